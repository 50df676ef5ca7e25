drop index recipient_due;
alter index recipient_due_by_band rename to recipient_due;
