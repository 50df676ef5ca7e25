/** `deferd import postfix`: takes over the configuration and the mail of a stopped Postfix. */
import { existsSync } from 'node:fs'
import { hostname } from 'node:os'
import { dirname, resolve } from 'node:path'
import type { Command } from 'commander'
import type { LoadedConfig } from '../../config/load.ts'
import { Account } from '../../daemon/account.ts'
import { prepare, readySettings } from '../../daemon/preparation.ts'
import { convertConfiguration, type ConvertedConfiguration } from '../../import/configuration/conversion.ts'
import { postfixFiles } from '../../import/configuration/postfix-files.ts'
import { isUntouched } from '../../import/configuration/untouched-file.ts'
import { writeConfiguration } from '../../import/configuration/written-files.ts'
import { openTarget, type ImportTarget, type MailCounts } from '../../import/spool/import-target.ts'
import { lockSpool } from '../../import/spool/master-lock.ts'
import { surveySpool, takeOverSpool, type TakeOverReport } from '../../import/spool/take-over.ts'
import { StoreUnavailable } from '../../store/queue-store.ts'
import { errorMessage } from '../../system/caught-error.ts'
import { importJson, importLines, isIncomplete, problemsOf } from '../render/import-report.ts'
import { jsonLine, maskControls } from '../../presentation/text.ts'
import { loadShellConfig, overridesOf, subcommand } from '../shell/config-options.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { Shell } from '../shell/shell.ts'

interface ImportOptions {
  readonly config?: string
  readonly configDir: string
  readonly spool?: string
  readonly dryRun?: true
  readonly force?: true
  readonly user?: string
  readonly json?: true
}

/** The configuration file that the import uses, and the configuration converted from main.cf. */
interface Plan {
  readonly path: string
  /** Null when the configuration file exists: the import leaves the file as it is. */
  readonly converted: ConvertedConfiguration | null
  readonly spool: string
}

/** Queue folder of the packaged daemon. */
const QUEUE_DIRECTORY = '/var/lib/deferd'

function configPath(shell: Shell, { config }: ImportOptions): string {
  const { folder, system } = shell.defaultFiles
  return resolve(config ?? (shell.env['DEFERD_CONFIG'] || (shell.uid === 0 || existsSync(system) ? system : folder)))
}

/** True for a configuration file that an import leaves as it is. That of the package is replaced while it is untouched. */
const isKept = (path: string, { force }: ImportOptions): boolean => existsSync(path) && force !== true && !isUntouched(path)

/** The queue folder of a configuration that the import writes. */
const convertedFolder = (overrides: readonly string[]): string =>
  overrides.findLast((one) => /^\s*queue_directory\s*=/.test(one))?.replace(/^[^=]*=\s*/, '') ?? QUEUE_DIRECTORY

function planOf(shell: Shell, options: ImportOptions, overrides: readonly string[]): Plan {
  const path = configPath(shell, options)
  const stays = isKept(path, options)
  if (stays && options.dryRun !== true && options.spool !== undefined) return { path, converted: null, spool: resolve(options.spool) }
  const configDirectory = resolve(options.configDir)
  try {
    const place = { configDirectory, folder: dirname(path), hostname: hostname(), queueDirectory: convertedFolder(overrides) }
    const converted = convertConfiguration(place, postfixFiles)
    return { path, converted: stays && options.dryRun !== true ? null : converted, spool: resolve(options.spool ?? converted.spool) }
  } catch (cause) {
    throw new CommandError(EX.unavailable, errorMessage(cause), { cause })
  }
}

/** Prints the configuration that an import would write, and counts the mail of the spool. Changes nothing. */
const dryRun = async (shell: Shell, { path, converted, spool }: Plan, options: ImportOptions): Promise<TakeOverReport> => {
  const report = surveySpool(spool)
  const files = converted?.files ?? []
  const runs = await lockSpool(spool).then(
    async (lock) => (await lock?.release(), null),
    (error: unknown) => errorMessage(error),
  )
  const kept = isKept(path, options) ? [`${path} exists and would stay as it is; --force replaces it`] : []
  const notes = [
    ...kept,
    ...files.map((file) => `would write ${file.path}`),
    ...(runs === null ? [] : [runs]),
    ...importLines(report, true),
  ]
  if (options.json === true) await shell.stdout.write(jsonLine({ config: path, toml: converted?.toml ?? null, ...importJson(report) }))
  else await shell.stdout.write(`${converted?.toml ?? ''}${notes.map((line) => `# ${maskControls(line)}\n`).join('')}`)
  return report
}

async function takeOver(shell: Shell, spool: string, account: Account | null, loaded: LoadedConfig): Promise<TakeOverReport> {
  const settings = readySettings(prepare(loaded, account))
  const target = await openTarget(settings, { account, machine: shell.clock, random: shell.random })
  try {
    return await countedTakeOver(shell, spool, target)
  } finally {
    await target.close()
  }
}

/** Takes over the mail, and compares the counts of the queue before and after. */
async function countedTakeOver(shell: Shell, spool: string, target: ImportTarget): Promise<TakeOverReport> {
  const before = await target.counts()
  const audit = { at: target.clock.now(), who: shell.user, action: 'import', arguments: `postfix ${spool}`, changed: 0 }
  try {
    const report = await takeOverSpool(spool, target)
    const taken = report.files.filter((file) => file.kind === 'taken')
    const expected = {
      messages: before.messages + taken.length,
      recipients: before.recipients === null ? null : taken.reduce((sum, one) => sum + one.queued, before.recipients),
    }
    const after = await target.counts()
    if (taken.length > 0) await target.store.records.audit.add({ ...audit, changed: taken.length })
    if (after.messages === expected.messages && after.recipients === expected.recipients) return report
    const counts = `${countText(after)} instead of ${countText(expected)}`
    throw new CommandError(EX.software, `the queue has ${counts}: keep the spool, and report this as a bug`)
  } catch (cause) {
    if (!(cause instanceof StoreUnavailable)) throw cause
    throw new CommandError(EX.temporary, `cannot queue mail: ${cause.message}; call the command again, which continues`, { cause })
  }
}

const countText = ({ messages, recipients }: MailCounts): string =>
  recipients === null ? `${messages} messages of imports` : `${messages} messages with ${recipients} recipients`

/** Resolves with the report of what was, or would be, taken over. */
async function importPostfix(shell: Shell, options: ImportOptions, command: Command): Promise<TakeOverReport> {
  const overrides = overridesOf(command)
  const plan = planOf(shell, options, overrides)
  if (options.dryRun === true) return dryRun(shell, plan, options)
  const { path, converted } = plan
  const load = () => loadShellConfig(shell, { file: path, overrides, calledAs: 'deferd' })
  const kept = converted === null ? await load() : null
  const account = Account.ofDaemon(kept?.config.queue_directory ?? convertedFolder(overrides), options.user)
  // The spool is looked at, and locked, before any file is written.
  surveySpool(plan.spool)
  const lock = await lockSpool(plan.spool)
  try {
    const written =
      converted === null
        ? []
        : writeConfiguration(path, converted, { force: options.force === true, owner: account, replaces: isUntouched })
    const report = await takeOver(shell, plan.spool, account, kept ?? (await load()))
    await print(shell, { path, written, report }, options)
    return report
  } finally {
    await lock?.release()
  }
}

interface Outcome {
  readonly path: string
  readonly written: readonly string[]
  readonly report: TakeOverReport
}

async function print(shell: Shell, { path, written, report }: Outcome, { json }: ImportOptions): Promise<void> {
  if (json === true) return shell.stdout.write(jsonLine({ config: path, written, ...importJson(report) }))
  const notes = written.length === 0 ? [`${path} is used as it is; --force replaces it`] : written.map((file) => `${file} written`)
  const lines = [...notes, ...importLines(report, false)]
  return shell.stdout.write(lines.map((line) => `${maskControls(line)}\n`).join(''))
}

/** `end` ends the command with an exit code. */
export function addImport(program: Command, shell: Shell, end: (code: number) => void): void {
  const parent = program.command('import').description('take over the configuration and the mail of another mail system')
  subcommand(parent, 'postfix', 'take over the configuration and the mail of a stopped Postfix')
    .option('--config-dir <dir>', 'folder of main.cf and master.cf', '/etc/postfix')
    .option('--spool <dir>', 'spool of Postfix (default: queue_directory of main.cf)')
    .option('--dry-run', 'print the new configuration and the counts of the spool; change nothing')
    .option('--force', 'replace an existing configuration file')
    .option(
      '--user <name>',
      'user of the daemon, who gets queue, keys and logins; only root can name one (default: owner of the queue folder)',
    )
    .option('--json', 'one JSON object')
    .addHelpText(
      'after',
      `
Writes deferd.toml, with a comment for each setting without an equivalent, unless the file exists and is not that of the package. Then queues the mail of
the maildrop, incoming, active, deferred and hold of Postfix by that configuration, in a folder or in PostgreSQL. The spool is only read. The command can
be repeated: each message is queued once. docs/import.md has the steps of a move.

Exit codes: 0 all mail is taken over; 65 files are left, and listed; 69 there is no
Postfix or spool; 73 a file that would be written exists; 75 Postfix runs, or a daemon uses the queue, or the disk is
full; 77 root is needed; 78 the configuration has a problem.

Examples:
  deferd import postfix --dry-run
  deferd import postfix --user deferd`,
    )
    .action(async (_options: unknown, command: Command) => {
      const report = await importPostfix(shell, command.optsWithGlobals<ImportOptions>(), command)
      if (isIncomplete(report)) end(EX.data)
      for (const problem of problemsOf(report)) await shell.stderr.write(`deferd: ${maskControls(problem)}\n`)
    })
}
