/** `deferd salvage`: recovers the readable mail of a damaged queue into a new one. */
import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import { errorMessage } from '../../system/caught-error.ts'
import { subcommand } from '../shell/config-options.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { Shell } from '../shell/shell.ts'
import { jsonLine, maskControls, plural } from '../../presentation/text.ts'

interface SalvageOptions {
  readonly json?: true
}

/** Runs `salvage`. Throws CommandError (73) when it cannot create the folder. */
function intoNewFolder<T>(folder: string, salvage: () => T): T {
  try {
    return salvage()
  } catch (cause) {
    if (!(cause instanceof Error && 'syscall' in cause && cause.syscall === 'mkdir')) throw cause
    throw new CommandError(EX.cannotCreate, `cannot create ${folder}: ${errorMessage(cause)}; name a folder whose parent exists`, { cause })
  }
}

export function addSalvage(program: Command, shell: Shell, end: (code: number) => void): void {
  subcommand(program, 'salvage <from> <to>', 'recover the readable mail of a damaged queue into a new queue folder')
    .option('--json', 'one JSON object')
    .addHelpText(
      'after',
      `
FROM is a queue folder or a queue.db, which is only read; TO must not exist. Messages with unreadable parts are in the
queue corrupt of TO, and messages of which a newer version may be lost are on hold.

Exit codes: 0 everything was readable; 65 something was not, and is listed; 69 no queue at FROM; 73 TO exists, or cannot be created;
75 a daemon uses FROM; 78 FROM has no readable page of a queue.

Example:
  deferd salvage /var/lib/deferd /var/lib/deferd-salvaged`,
    )
    .action(async (from: string, to: string, options: SalvageOptions) => {
      if (/^postgres(?:ql)?:/.test(from)) {
        throw new CommandError(
          EX.usage,
          'a queue in PostgreSQL is recovered with the tools of PostgreSQL: restore a base backup or a dump of pg_dump',
        )
      }
      if (existsSync(to)) throw new CommandError(EX.cannotCreate, `${to} exists: name a folder that does not exist yet`)
      const { salvageQueue } = await import('../../store/sqlite/file/restore.ts')
      const report = intoNewFolder(to, () => salvageQueue(from, to))
      if (report.lost.length > 0 || report.corrupt.length > 0) end(EX.data)
      const lines = [
        `${plural(report.messages, 'message')} salvaged to ${to}, ${report.corrupt.length} in corrupt, ${report.held} put on hold`,
        ...report.corrupt.map(({ queueId, why }) => `corrupt ${queueId}: ${why}`),
        ...report.lost.map((one) => `unreadable: ${one}`),
      ]
      await shell.stdout.write(options.json === true ? jsonLine(report) : lines.map((line) => `${maskControls(line)}\n`).join(''))
    })
}
