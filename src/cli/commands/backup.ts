/**
 * `deferd backup`: a copy of the queue as of one moment, taken while the daemon runs.
 */
import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Command } from 'commander'
import { configOf, subcommand } from '../command.ts'
import { CommandError, EX, type Shell } from '../shell.ts'
import { byteSize, harmless } from '../text.ts'

/** All pages in one step: what is copied in several starts again whenever the daemon writes in between. */
const EVERYTHING = 0x7fffffff

async function synced(path: string): Promise<void> {
  const file = await open(path, 'r')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}

async function backup(shell: Shell, file: string, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  // Opened and closed first: it says what is wrong with the queue, if anything is.
  const reader = await shell.openReader(config)
  reader.close()
  const { default: Database } = await import('better-sqlite3')
  const { queueFile } = await import('../../queue/sqlite/database.ts')
  const partial = `${file}.partial`
  const db = new Database(queueFile(config.queue_directory), { readonly: true })
  try {
    // Mail is nobody else's business, in a copy too.
    await (await open(partial, 'w', 0o600)).close()
    const { totalPages } = await db.backup(partial, { progress: () => EVERYTHING })
    await synced(partial)
    await rename(partial, file)
    await synced(dirname(file))
    const size = totalPages * Number(db.pragma('page_size', { simple: true }))
    await shell.stdout.write(`${byteSize(size)} copied to ${harmless(file)}\n`)
  } catch (cause) {
    await rm(partial, { force: true })
    throw new CommandError(EX.osError, `the copy could not be made: ${(cause as Error).message}`, { cause })
  } finally {
    db.close()
  }
}

export function addBackup(program: Command, shell: Shell): void {
  subcommand(program, 'backup <file>', 'copy the queue to a file, also while the daemon runs')
    .addHelpText(
      'after',
      `
To use the copy: stop the daemon, put the file in place of queue.db in the queue folder, remove queue.db-wal and
queue.db-shm there, start the daemon. What was delivered since the copy was made is then sent again.

Example:
  deferd backup /var/backups/deferd.db`,
    )
    .action((file: string, _options: unknown, command: Command) => backup(shell, file, command))
}
