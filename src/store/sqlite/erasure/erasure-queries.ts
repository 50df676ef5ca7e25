/** Statements of erasures. */
import { chunkRange } from '../../sql/id-ranges.ts'

export const keptAfter = 'select message, content_id as content, until, size from kept_content where message > ? order by message limit ?'
export const chunksOf = `select data from chunk where id ${chunkRange(':content')} order by id`
export const departureOf = 'select seq, record from history where message = ? order by seq desc limit 1'
