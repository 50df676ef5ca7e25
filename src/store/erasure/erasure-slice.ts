/** Slices of an erasure (store/returned-mail). The stages are the tables in turn, then what an engine does at the end. */
import type { ErasureSlice, ErasureStep } from '../returned-mail.ts'
import type { HistoryRecord } from '../history-record.ts'
import type { OperationRound } from '../records/audit-log.ts'
import { HISTORY, KEPT_CONTENT, type ErasedTable } from './erased-tables.ts'
import type { Eraser } from './eraser.ts'

/** Maximum number of rows that a slice reads, which takes some milliseconds. */
export const ERASED_ROWS = 50
/** Maximum number of contents that a slice reads, and of their bytes but for the last one. */
export const ERASED_CONTENTS = 20
const ERASED_BYTES = 2 * 1024 * 1024

/** The first stage, or the one after another; null after the last one, and for a stage that an earlier release had. */
export function stageAfter(stages: readonly string[], stage: string | null): string | null {
  return stage === null ? (stages[0] ?? null) : (stages[stages.indexOf(stage) + 1] ?? null)
}

/** Subject of a slice: kept contents, rows of a table, or what its engine alone has. */
type ErasureStage =
  | { readonly kind: 'contents' }
  | { readonly kind: 'rows'; readonly table: ErasedTable }
  | { readonly kind: 'own'; readonly name: string }

/** Throws for a stage that the engine does not have. */
export function stageOf(
  { stage }: Pick<ErasureSlice, 'stage'>,
  { tables, stages }: { readonly tables: readonly ErasedTable[]; readonly stages: readonly string[] },
): ErasureStage {
  const name = stage ?? stageAfter(stages, null)
  if (name === KEPT_CONTENT) return { kind: 'contents' }
  const table = tables.find((one) => one.name === name)
  if (table !== undefined) return { kind: 'rows', table }
  if (name !== null && stages.includes(name)) return { kind: 'own', name }
  throw new Error(`an erasure does not know the stage ${name}`)
}

/** The step of a slice of a stage, whose last row has the place `last`. */
export function stepOf(
  stages: readonly string[],
  { of, rows, isLast, last }: Pick<ErasureStep, 'of' | 'rows'> & { readonly isLast: boolean; readonly last: string },
): ErasureStep {
  const following = stageAfter(stages, of)
  const next = !isLast ? { stage: of, after: last } : following === null ? null : { stage: following, after: null }
  return { of, rows, next, advances: true }
}

/** Number of changed messages of a slice, and how its erasure changes. */
export const progressOf = (
  { of, rows, next }: ErasureStep,
  { after, until }: Pick<ErasureSlice, 'after' | 'until'>,
  { operation }: Pick<OperationRound, 'operation'>,
) => ({ changed: of === HISTORY.name ? rows : 0, erasure: { operation, ...(next ?? { stage: of, after }), until } })

/** The kept contents that a slice reads, of those that follow; at least one. */
export function contentsToRead<R extends { readonly size: number }>(
  following: readonly R[],
): { readonly contents: readonly R[]; readonly isLast: boolean } {
  let bytes = 0
  const contents = following.filter(({ size }) => {
    const hasRoom = bytes <= ERASED_BYTES
    bytes += size
    return hasRoom
  })
  return { contents, isLast: contents.length === following.length && following.length < ERASED_CONTENTS }
}

export const namesOf = (tables: readonly ErasedTable[]): readonly string[] => [KEPT_CONTENT, ...tables.map(({ name }) => name)]

/** Whether the kept content of a message is deleted: of such an address, or without a history, so that it cannot be sent again. */
export function losesContent(details: HistoryRecord | null, eraser: Eraser): boolean {
  if (details === null) return true
  const leftAt = details.recipients.reduce((latest, { settledAt = 0 }) => Math.max(latest, settledAt), 0)
  return leftAt < eraser.terms.before && eraser.isOf(details)
}
