/** Access entries of operators in JSON. */
import { z } from 'zod'
import { ACCESS_SUBJECTS, type AccessEntry } from '../../store/records/access-entry.ts'
import type { WallView } from '../../system/wall-view.ts'
import { time, timeOrNull, type Json } from '../members.ts'

const accessEntryShape = z.object({
  subject: z.enum(ACCESS_SUBJECTS),
  key: z.string(),
  action: z.string(),
  added_time: time,
  added_by: z.string(),
  expire_time: timeOrNull,
})

export const accessEntriesShape = z.object({ entries: z.array(accessEntryShape) }).meta({ id: 'AccessEntries' })

export type AccessEntryJson = Json<typeof accessEntryShape>
export type AccessEntriesJson = Json<typeof accessEntriesShape>

export const accessEntryJson = ({ subject, key, action, addedAt, addedBy, expiresAt }: AccessEntry, wall: WallView): AccessEntryJson => ({
  subject,
  key,
  action,
  added_time: wall.seconds(addedAt),
  added_by: addedBy,
  expire_time: wall.secondsOrNull(expiresAt),
})
