/**
 * Backups by the calendar. A table replaces and removes only files that it wrote itself and that are as it left them: their paths and
 * identities are in its runs (schedule-run).
 */
import { lstat, rm } from 'node:fs/promises'
import type { ScheduledAction } from '../config/values/tables/schedule-table.ts'
import { zoneTimeAt } from '../calendar/zone-time.ts'
import { formatStamp } from '../mail/mail-date.ts'
import { byteSize, plural } from '../presentation/text.ts'
import { writeBackup } from '../store/sqlite/file/backup.ts'
import type { Records } from '../store/records/records.ts'
import type { ScheduleRun } from '../store/records/schedule-run.ts'
import { errorCode, errorMessage } from '../system/caught-error.ts'
import type { MachineClock, WallTime } from '../system/clock.ts'
import type { Random } from '../system/random.ts'
import type { BegunRun, RunEnd } from './schedule-runner.ts'

interface BackupDeps {
  /** Folder of the queue. */
  readonly directory: string
  readonly clock: Pick<MachineClock, 'now'>
  readonly random: Random
  readonly runs: Records['scheduleRuns']
  /** Copies the queue to a path, and resolves with the size in bytes. */
  readonly copyTo: (path: string, stopping: AbortSignal) => Promise<number>
}

type BackupAction = Extract<ScheduledAction, { readonly do: 'backup' }>

/** The path of the file of a run: `{date}` is `2026-11-28`, `{time}` is `023000`. */
function backupPath(to: string, planned: WallTime, zone: string): string {
  const [, year = '', month = '', day = '', time = ''] = /^(\d{4})(\d\d)(\d\d)(\d{6})$/.exec(formatStamp(zoneTimeAt(zone, planned))) ?? []
  return to.replaceAll('{date}', `${year}-${month}-${day}`).replaceAll('{time}', time)
}

/** Tells a file from one that has taken its place, or was changed; null when there is none. */
async function identityOf(file: string): Promise<string | null> {
  try {
    const { ino, size, mtimeMs } = await lstat(file)
    return [ino, size, mtimeMs].join(' ')
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return null
    throw error
  }
}

const failed = (text: string): RunEnd => ({ outcome: 'failed', text, changed: 0 })

/** Writes the file of a run, and removes the oldest files of its table. Rejects with BackupFailed. */
export async function scheduledBackup({ table, planned, stopping }: BegunRun, action: BackupAction, deps: BackupDeps): Promise<RunEnd> {
  const { name, zone } = table
  const { runs, directory, clock, random, copyTo } = deps
  const file = backupPath(action.to, planned, zone)
  const written = (await runs.of(name)).filter((run) => run.file !== null)
  const [there, former] = [await identityOf(file), written.filter((run) => run.file === file)]
  if (there !== null && !former.some((run) => run.identity === there))
    return failed(`${file} exists, and this table did not write it: move it to another place, or change to`)
  const size = await writeBackup({ file, directory, now: clock.now(), random, copyTo: (path) => copyTo(path, stopping) })
  for (const run of former) await runs.keepFile({ name, planned: run.planned, file: null, identity: null })
  await runs.keepFile({ name, planned, file, identity: await identityOf(file) })
  const text = `${byteSize(size)} copied to ${file}`
  if (action.keep === null) return { outcome: 'done', text, changed: 1 }
  const { removed, problem } = await removeOldest(
    written.filter((run) => run.file !== file),
    action.keep - 1,
    runs,
  )
  if (problem !== null) return { outcome: 'failed', text: `${text}, but ${problem}`, changed: 1 }
  return { outcome: 'done', text: removed === 0 ? text : `${text}; ${plural(removed, 'older file')} removed`, changed: 1 }
}

/** Removes all but the newest files. A file that is gone or was changed counts no more, and stays as it is. */
async function removeOldest(written: readonly ScheduleRun[], keep: number, runs: BackupDeps['runs']) {
  let [kept, removed] = [0, 0]
  let problem: string | null = null
  for (const run of written.toReversed()) {
    const { name, planned, file, identity } = run
    if (file === null) continue
    const isOwn = (await identityOf(file)) === identity
    if (isOwn && ++kept <= keep) continue
    try {
      if (isOwn) {
        await rm(file)
        removed++
      }
      await runs.keepFile({ name, planned, file: null, identity: null })
    } catch (error) {
      problem = `cannot remove ${file}: ${errorMessage(error)}; allow deferd to write its folder`
    }
  }
  return { removed, problem }
}
