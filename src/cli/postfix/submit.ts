/** Submits a message through the maildrop, and wakes the daemon. */
import { sharedPlace } from '../../config/values/queue-place.ts'
import { existsSync } from 'node:fs'
import type { Config } from '../../config/options.ts'
import type { Envelope } from '../../mail/envelope.ts'
import { pickupPath } from '../../daemon/admin/socket-path.ts'
import { maskControls } from '../../presentation/text.ts'
import { submitToMaildrop } from '../../queue/intake/maildrop-writer.ts'
import { QueueIncompatible, QueueTooNew } from '../../store/errors.ts'
import { errorCode, errorMessage } from '../../system/caught-error.ts'
import { SECOND } from '../../system/clock.ts'
import { outcomeOf, OUTCOME_LIMIT, wakeDaemon } from '../queue-client/pickup.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { Shell } from '../shell/shell.ts'

/**
 * Throws when no daemon runs, and the queue in the folder exists and this program will not open it. A queue that is missing, or that this
 * user cannot read, is accepted.
 */
async function assertCompatible(shell: Shell, config: Config): Promise<void> {
  // The daemon takes the maildrop, whether or not the database can be reached now.
  if (sharedPlace(config) !== null || existsSync(pickupPath(config.queue_directory))) return
  try {
    const { reader } = await shell.openReader(config)
    await reader.close()
  } catch (error) {
    if (error instanceof QueueIncompatible || error instanceof QueueTooNew) throw error
  }
}

/**
 * Stores a message in the maildrop and wakes the daemon. Resolves with the names of its files when they are durable. Throws CommandError
 * with sendmail's exit codes.
 */
export async function submit(shell: Shell, config: Config, envelope: Envelope, content: Buffer): Promise<readonly string[]> {
  await assertCompatible(shell, config)
  const { queue_directory: queueDirectory } = config
  const draw = shell.random.stream('maildrop')
  const newName = () => {
    const unguessable = [1, 2].map(() => Math.floor(draw() * 2 ** 48).toString(36)).join('')
    return `${shell.clock.now()}-${shell.pid}-${unguessable}`
  }
  try {
    return await submitToMaildrop(shell.files, queueDirectory, { newName, envelope, content })
  } catch (cause) {
    if (errorCode(cause) === 'ENOENT')
      throw new CommandError(EX.unavailable, `there is no maildrop in ${queueDirectory}: the first start of the daemon creates it`, {
        cause,
      })
    throw new CommandError(EX.temporary, `cannot queue mail: ${errorMessage(cause)}`, { cause })
  }
}

/** Notifies the daemon for the files of a submission. */
export const announce = (shell: Shell, { queue_directory: queueDirectory }: Config): Promise<void> =>
  wakeDaemon(queueDirectory, shell.clock)

/** Notifies the daemon, waits for the queue ids, and resolves with text for the user: the ids, or why there are none. */
export async function awaitQueueIds(shell: Shell, { queue_directory: queueDirectory }: Config, names: readonly string[]): Promise<string> {
  const outcome = await outcomeOf(queueDirectory, names, shell.clock)
  switch (outcome.kind) {
    case 'settled':
      return outcome.lines.map((line) => maskControls(line)).join('\n')
    case 'no daemon':
      return 'stored in the maildrop; no daemon runs, and the next one assigns the queue id'
    case 'waiting':
      return `stored in the maildrop; the daemon has not assigned a queue id within ${OUTCOME_LIMIT / SECOND} seconds`
  }
}
