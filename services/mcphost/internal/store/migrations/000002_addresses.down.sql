alter table nodes drop column url;
