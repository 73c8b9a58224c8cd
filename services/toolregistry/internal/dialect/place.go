package dialect

// Holds says what a keyword of a schema holds.
type Holds int

// What a keyword holds.
const (
	// Data is anything but a schema: a type, a bound, an example.
	Data Holds = iota
	// One schema.
	One
	// List of schemas.
	List
	// Members are schemas by name.
	Members
)

// Place answers what a keyword of draft 2020-12 holds. What stands in data may look like a schema and is none.
func Place(keyword string) Holds {
	switch keyword {
	case "additionalProperties", "items", "contains", "not", "if", "then", "else", "propertyNames", "unevaluatedItems",
		"unevaluatedProperties", "contentSchema":
		return One
	case "allOf", "anyOf", "oneOf", "prefixItems":
		return List
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		return Members
	default:
		return Data
	}
}
