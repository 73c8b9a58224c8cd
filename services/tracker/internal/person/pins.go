package person

import (
	"slices"

	"github.com/google/uuid"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// Change is how a set is to change: members come and go, or the set is replaced.
type Change struct {
	Add, Remove []uuid.UUID
	// Replace puts Set, which may be empty, in the place of the whole.
	Replace bool
	Set     []uuid.UUID
}

func (c Change) apply(have []uuid.UUID) []uuid.UUID {
	if c.Replace {
		return unique(c.Set)
	}
	kept := slices.DeleteFunc(slices.Clone(have), func(id uuid.UUID) bool { return slices.Contains(c.Remove, id) })
	return unique(append(kept, c.Add...))
}

func unique(ids []uuid.UUID) []uuid.UUID {
	out := make([]uuid.UUID, 0, len(ids))
	for _, id := range ids {
		if !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// Pin changes what is kept at hand; a nil change leaves its set. It answers false when everything was so already.
func (r *Record) Pin(views, favorites *Change) (bool, error) {
	pinned, liked := r.Views, r.Favorites
	if views != nil {
		pinned = views.apply(r.Views)
	}
	if favorites != nil {
		liked = favorites.apply(r.Favorites)
	}
	if n := len(pinned); n > MaxViews {
		return false, fault.New(fault.Invalid, "views would be %d; at most %d may be pinned", n, MaxViews).WithField("views")
	}
	if n := len(liked); n > MaxFavorites {
		return false, fault.New(fault.Invalid, "favorites would be %d; there may be at most %d", n, MaxFavorites).WithField("favorites")
	}
	if slices.Equal(pinned, r.Views) && slices.Equal(liked, r.Favorites) {
		return false, nil
	}
	r.Views, r.Favorites = pinned, liked
	r.Version++
	return true, nil
}
