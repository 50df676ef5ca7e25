/** Erases addresses of mail that has left a queue in memory. A slice is a whole stage. */
import type { ErasureSlice, ErasureStep } from '../returned-mail.ts'
import { ERASED_TABLES, erasedColumns, KEPT_CONTENT, type ErasedTable, type StoredRow } from '../erasure/erased-tables.ts'
import { losesContent, namesOf, progressOf, stageAfter, stepOf } from '../erasure/erasure-slice.ts'
import { Eraser } from '../erasure/eraser.ts'
import { KEPT_CONTENT_ROWS } from '../records/kept-content.ts'
import { SAVE_ERASURE } from '../records/erasure.ts'
import { BEGIN_ROUND, COUNT_CHANGED } from '../records/operation-round.ts'
import { hasContent } from './held-contents.ts'
import type { MemoryQueue } from './queue-state.ts'

const TABLES = ERASED_TABLES.sqlite
const STAGES = namesOf(TABLES)

const snake = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

interface Erasing {
  readonly queue: MemoryQueue
  readonly eraser: Eraser
  readonly isPlan: boolean
}

/** As DepartedMail.erase. */
export function eraseHeld(queue: MemoryQueue, slice: ErasureSlice): ErasureStep | null {
  const { terms, key, stage, round } = slice
  if (round !== null && !BEGIN_ROUND.held(queue.records, round)) return null
  const of = stage ?? stageAfter(STAGES, null) ?? KEPT_CONTENT
  const rows = rowsOf(of, { queue, eraser: new Eraser(terms, key), isPlan: round === null })
  const step = stepOf(STAGES, { of, rows, isLast: true, last: '' })
  if (round === null) return step
  const { changed, erasure } = progressOf(step, slice, round)
  COUNT_CHANGED.held(queue.records, round.operation, changed)
  SAVE_ERASURE.held(queue.records, erasure)
  return step
}

/** Number of changed rows of a stage. */
function rowsOf(of: string, erasing: Erasing): number {
  const { queue, eraser, isPlan } = erasing
  switch (of) {
    case KEPT_CONTENT:
      return contents(erasing)
    case 'history':
      return history(erasing)
    case 'event':
    case 'parked':
    case 'subscription':
      return queue.outbox.erase(of, eraser, isPlan)
    case 'destination': {
      const changed = [...queue.destinations].filter(([, record]) => JSON.stringify(eraser.value(record)) !== JSON.stringify(record))
      if (!isPlan) for (const [name, record] of changed) queue.destinations.set(name, eraser.value(record) as typeof record)
      return changed.length
    }
    default:
      return records(tableOf(of), queue.records.tables.get(of)?.values() ?? [], erasing)
  }
}

function tableOf(name: string): ErasedTable {
  const table = TABLES.find((one) => one.name === name)
  if (table === undefined) throw new Error(`an erasure does not know the stage ${name}`)
  return table
}

/** Changes members that have the names of the columns. */
function records(table: ErasedTable, rows: Iterable<object>, { eraser, isPlan }: Erasing): number {
  let changed = 0
  for (const row of rows) {
    const stored = Object.fromEntries(Object.entries(row).map(([name, value]) => [snake(name), value as StoredRow[string]]))
    const columns = erasedColumns(table, stored, eraser)
    if (columns === null) continue
    changed++
    if (!isPlan) Object.assign(row, columns)
  }
  return changed
}

function history({ queue, eraser, isPlan }: Erasing): number {
  let changed = 0
  for (const [id, { seq, details }] of queue.history) {
    if ((details.leftAt ?? 0) >= eraser.terms.before) continue
    const erased = { ...details, ...eraser.record(details) }
    if (JSON.stringify(erased) === JSON.stringify(details)) continue
    changed++
    if (!isPlan) queue.history.set(id, { seq, details: erased })
  }
  return changed
}

function contents({ queue, eraser, isPlan }: Erasing): number {
  const rows = KEPT_CONTENT_ROWS.heldIn(queue.records)
  let dropped = 0
  for (const { message, contentId } of rows.values()) {
    const details = queue.history.get(message)?.details ?? null
    if (!losesContent(details, eraser) && !eraser.isIn(Buffer.concat(queue.bodies.get(contentId) ?? []))) continue
    dropped++
    if (isPlan) continue
    rows.delete(String(message))
    if (!hasContent(queue, contentId)) queue.bodies.delete(contentId)
  }
  return dropped
}
