drop table authorization_consents;
drop table authorization_tokens;
drop table authorization_issuers;
drop table authorization_clients;
