/** Warnings and errors of the log, in JSON. */
import { z } from 'zod'
import type { OwnerId } from '../mail/message.ts'
import { KEPT_KINDS, KEPT_LEVELS, type KeptLevel, type KeptLine } from '../telemetry/recent-log.ts'
import { count, next, textOrNull, time, type Json } from './members.ts'

const logRecordShape = z.object({
  id: z.string().describe('text without meaning; different for each record'),
  time,
  node: textOrNull.describe('name of the node; null for a queue with one daemon'),
  level: z.enum(KEPT_LEVELS),
  event: z.enum(KEPT_KINDS).describe('see docs/monitoring.md'),
  program: z.string().describe('program of Postfix that writes such lines'),
  queue_ids: z.array(z.string()).describe('messages that the line names'),
  destination: textOrNull.describe('destination that the line is about'),
  text: z.string().describe('the line of `log_format = "postfix"`, without time, host and level'),
})

export type LogRecordJson = Json<typeof logRecordShape>

export const logPageShape = z
  .object({
    records: z.array(logRecordShape).describe('the last one first'),
    counts: z.object({ warn: count, error: count, fatal: count }).describe('records that match, on all pages'),
    nodes: z.array(
      z.object({
        name: textOrNull.describe('null for a queue with one daemon'),
        since: time
          .nullable()
          .describe('all warnings and errors since then are kept; null for a node that does not answer within a second'),
      }),
    ),
    next,
    as_of: time,
  })
  .meta({ id: 'LogPage' })

export type LogPageJson = Json<typeof logPageShape>

/** A line with its node. */
export interface NodeLine extends KeptLine {
  readonly node: OwnerId
  readonly name: string | null
}

export const logRecordJson = ({ node, name, seq, at, level, event, program, queueIds, destination, text }: NodeLine): LogRecordJson => ({
  id: `${at}-${seq}-${node}`,
  time: at / 1_000,
  node: name,
  level,
  event,
  program,
  queue_ids: queueIds,
  destination,
  text,
})

export const summedCounts = (counts: readonly Readonly<Record<KeptLevel, number>>[]): LogPageJson['counts'] => {
  const sum = (level: KeptLevel): number => counts.reduce((total, one) => total + one[level], 0)
  return { warn: sum('warn'), error: sum('error'), fatal: sum('fatal') }
}
