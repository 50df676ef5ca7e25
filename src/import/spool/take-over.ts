/**
 * Takes over the mail of a stopped Postfix: reads its queue files, and queues each message with a key made from its file, so that
 * repetitions and interruptions queue each message exactly once. The spool is only read.
 */
import { LookupFailed } from '../../rewriting/lookup-table.ts'
import type { QueueStore } from '../../store/queue-store.ts'
import { corruptFiles, readSpoolFile, SpoolLogs, spoolFiles, type PostfixQueue, type SkippedLog, type SpoolFile } from './postfix-spool.ts'
import { UnusableQueueFile } from './queue-records.ts'
import { keyOf, remainingRecipients, takenMessage, type Candidate, type TakeOverRules, type QueueTimes } from './taken-message.ts'

/** Outcome for one file. */
type TakeOver =
  /**
   * The message is queued, or would be in a dry run. `recipients` counts the recipients of the file, `queued` those after the expansion of
   * aliases.
   */
  | { readonly kind: 'taken'; readonly recipients: number; readonly queued: number }
  /** An earlier run has queued the message. */
  | { readonly kind: 'known' }
  /** No recipient is left, or a content check has discarded the message. */
  | { readonly kind: 'finished' }
  /** The file was never completed, so its mail was never accepted. */
  | { readonly kind: 'incomplete' }
  /** The file cannot be taken over, and remains. */
  | { readonly kind: 'left'; readonly why: string }

export interface TakeOverReport {
  readonly files: readonly (TakeOver & { readonly source: SpoolFile })[]
  /** Number of files in Postfix's queue `corrupt`. */
  readonly corrupt: number
  /** Logfiles that were not read. */
  readonly skippedLogs: readonly SkippedLog[]
}

export interface TakeOverTarget {
  readonly store: QueueStore
  readonly rules: TakeOverRules
  readonly clock: QueueTimes
  /**
   * Queues a file of the maildrop. Resolves with the number of its recipients; 0 for a discarded message. Rejects with UnusableQueueFile.
   */
  readonly submit: (candidate: Candidate) => Promise<number>
}

/** Limits of one commit: number of messages, and their total bytes. */
const ROUND = 64
const ROUND_BYTES = 4 * 1024 * 1024

/** Counts the mail of a spool. Changes nothing. Throws SpoolUnusable. */
export function surveySpool(spool: string): TakeOverReport {
  const logs = new SpoolLogs(spool)
  const files = spoolFiles(spool).flatMap((source) => {
    const found = examine(source, logs)
    if (found === null) return []
    const recipients = found.kind === 'candidate' ? remainingRecipients(found.candidate).length : 0
    return [{ source, ...(found.kind === 'candidate' ? { kind: 'taken' as const, recipients, queued: recipients } : found) }]
  })
  return { files, corrupt: corruptFiles(spool), skippedLogs: logs.skipped }
}

/** Takes over the mail of a spool that is locked. Rejects with SpoolUnusable, or with StoreUnavailable when the store cannot commit. */
export async function takeOverSpool(spool: string, target: TakeOverTarget): Promise<TakeOverReport> {
  const known = new Set(await target.store.maildropFiles())
  const report: (TakeOver & { readonly source: SpoolFile })[] = []
  const logs = new SpoolLogs(spool)
  let round: Candidate[] = []
  const end = async (): Promise<void> => {
    report.push(...(await queueRound(round, target)))
    round = []
  }
  for (const source of spoolFiles(spool)) {
    const found = examine(source, logs)
    if (found === null) continue
    if (found.kind !== 'candidate') report.push({ source, ...found })
    else if (known.has(keyOf(found.candidate))) report.push({ source, kind: 'known' })
    else {
      known.add(keyOf(found.candidate))
      round.push(found.candidate)
    }
    if (round.length >= ROUND || bytesOf(round) >= ROUND_BYTES) await end()
  }
  await end()
  return { files: report, corrupt: corruptFiles(spool), skippedLogs: logs.skipped }
}

const bytesOf = (round: readonly Candidate[]): number => round.reduce((sum, { message }) => sum + message.content.length, 0)

/** The mail in a file, or the outcome for a file without mail to queue; null when the file has gone. */
function examine(source: SpoolFile, logs: SpoolLogs): TakeOver | { readonly kind: 'candidate'; readonly candidate: Candidate } | null {
  const reading = readSpoolFile(source)
  switch (reading.kind) {
    case 'gone':
      return null
    case 'incomplete':
      return { kind: 'incomplete' }
    case 'unusable':
      return { kind: 'left', why: reading.why }
    case 'read': {
      const [deferLog, bounceLog] = [logs.deliveries('defer', source.id), logs.deliveries('bounce', source.id)]
      const candidate = { ...reading.file, source, deferLog, bounceLog, aliases: logs.owedAliases(source.id) }
      return remainingRecipients(candidate).length === 0 ? { kind: 'finished' } : { kind: 'candidate', candidate }
    }
  }
}

/** Queues messages in one commit. */
async function queueRound(round: readonly Candidate[], target: TakeOverTarget): Promise<TakeOverReport['files']> {
  // All calls are made before the first answer, so that the store commits them together.
  return Promise.all(
    round.map(async (candidate) => {
      const { source } = candidate
      const recipients = remainingRecipients(candidate).length
      try {
        const queued = await queueOne(candidate, target)
        return queued === 0 ? { source, kind: 'finished' as const } : { source, kind: 'taken' as const, recipients, queued }
      } catch (error) {
        if (error instanceof UnusableQueueFile || error instanceof LookupFailed)
          return { source, kind: 'left' as const, why: error.message }
        throw error
      }
    }),
  )
}

async function queueOne(candidate: Candidate, { store, rules, clock, submit }: TakeOverTarget): Promise<number> {
  if (candidate.source.queue === 'maildrop') return submit(candidate)
  const entry = takenMessage(store.nextId(), candidate, clock, rules)
  await store.enqueue(entry)
  return entry.recipients.length
}

export interface QueueTakeOver {
  readonly queue: PostfixQueue
  readonly files: number
  readonly taken: number
  readonly recipients: number
  readonly known: number
  readonly finished: number
  readonly incomplete: number
  readonly left: number
}

export function countsOf({ files }: TakeOverReport): readonly QueueTakeOver[] {
  return [...Map.groupBy(files, ({ source }) => source.queue)].map(([queue, all]) => {
    const count = (kind: TakeOver['kind']) => all.filter((one) => one.kind === kind).length
    const recipients = all.reduce((sum, one) => sum + (one.kind === 'taken' ? one.recipients : 0), 0)
    const left = { incomplete: count('incomplete'), left: count('left') }
    return { queue, files: all.length, taken: count('taken'), recipients, known: count('known'), finished: count('finished'), ...left }
  })
}
