package story

import (
	"encoding/json"
	"fmt"
)

// itemList is what the story reads of list_work_items.
type itemList struct {
	Total int `json:"total"`
	Items []struct {
		Key      string `json:"key"`
		Reporter string `json:"reporter"`
		Assignee string `json:"assignee"`
	} `json:"items"`
}

func decodeItems(text string) (itemList, error) {
	var list itemList
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return list, fmt.Errorf("read the list of items: %w", err)
	}
	return list, nil
}
