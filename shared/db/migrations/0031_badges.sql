-- Up Migration

-- A personal badge updates every row of a page. The new versions fit into the page only when half of it is free; then no index
-- is written (HOT), which was four fifths of the cost of a badge. Rows that exist move to such pages when they are updated.
ALTER TABLE installation SET (fillfactor = 48);

-- Down Migration

ALTER TABLE installation SET (fillfactor = 85);
