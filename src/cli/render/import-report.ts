/** The report of an import: counts by queue, and the files that are left. Pure. */
import { countsOf, type QueueTakeOver, type TakeOverReport } from '../../import/spool/take-over.ts'
import { plural } from '../../presentation/text.ts'

/** True when files with mail are left in the spool. */
export const isIncomplete = ({ files }: TakeOverReport): boolean => files.some(({ kind }) => kind === 'left')

/** A sentence for each file that is left, or not read. */
export const problemsOf = ({ files, corrupt, skippedLogs }: TakeOverReport): readonly string[] => [
  ...files.flatMap((file) => (file.kind === 'left' ? [`${file.source.path} is left: ${file.why}`] : [])),
  ...files.flatMap((file) =>
    file.kind === 'incomplete' ? [`${file.source.path} is incomplete: its sender was never told that it is accepted`] : [],
  ),
  ...(corrupt === 0 ? [] : [`${plural(corrupt, 'file')} in Postfix’s queue corrupt ${corrupt === 1 ? 'is' : 'are'} left`]),
  ...skippedLogs.map(({ path, why }) => `${path} is not read, and its mail is taken over without its last outcome: ${why}`),
]

export const importJson = (report: TakeOverReport): object => ({
  queues: countsOf(report),
  left: report.files.flatMap((file) => (file.kind === 'left' ? [{ path: file.source.path, why: file.why }] : [])),
  corrupt: report.corrupt,
  skipped_logs: report.skippedLogs,
})

const HEADINGS = ['queue', 'files', 'taken over', 'recipients', 'before', 'finished', 'incomplete', 'left'] as const

const cellsOf = ({
  queue,
  files,
  taken,
  recipients,
  known,
  finished,
  incomplete,
  left,
}: Omit<QueueTakeOver, 'queue'> & { queue: string }) => [queue, files, taken, recipients, known, finished, incomplete, left].map(String)

const line = (cells: readonly string[]): string =>
  cells.map((cell, i) => (i === 0 ? cell.padEnd(9) : cell.padStart((HEADINGS[i]?.length ?? 0) + 2))).join('')

/** A table of the counts, and their comparison. `isDry` tells that nothing was changed. */
export function importLines(report: TakeOverReport, isDry: boolean): readonly string[] {
  const queues = countsOf(report)
  const sum = (key: Exclude<keyof QueueTakeOver, 'queue'>) => queues.reduce((total, one) => total + one[key], 0)
  const total = {
    queue: 'all',
    files: sum('files'),
    taken: sum('taken'),
    recipients: sum('recipients'),
    known: sum('known'),
    finished: sum('finished'),
    incomplete: sum('incomplete'),
    left: sum('left'),
  }
  const verb = isDry ? 'would be taken over' : 'taken over'
  const checked = isDry ? '' : ': the queue has grown by as many'
  return [
    line(HEADINGS),
    ...[...queues, total].map((one) => line(cellsOf(one))),
    `${plural(total.taken, 'message')} with ${plural(total.recipients, 'recipient')} ${verb}${checked}`,
  ]
}
