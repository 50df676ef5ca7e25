/** `deferd queue upgrade`: the state of the upgrade of a queue that several nodes share, and its end. */
import { SHARED_TITLES } from '../../../config/values/queue-place.ts'
import { clockOf } from '../../../system/queue-clock.ts'
import type { Command } from 'commander'
import type { NodeDirectory } from '../../../store/membership/node-directory.ts'
import { jsonLine, maskControls } from '../../../presentation/text.ts'
import { configOf, subcommand } from '../../shell/config-options.ts'
import { CommandError, EX } from '../../shell/exit.ts'
import type { Shell } from '../../shell/shell.ts'

interface Options {
  readonly finish?: true
  readonly json?: true
}

async function finish(shell: Shell, directory: NodeDirectory, node: string): Promise<void> {
  const { version: before, oldestKnown } = await directory.schema()
  const result = await directory.finishUpgrade()
  if ('older' in result) {
    const names = result.older.map(({ name, program }) => `${maskControls(name)} (deferd ${maskControls(program)})`).join(', ')
    throw new CommandError(EX.temporary, `an older deferd runs at ${names}: upgrade each node first, then finish`)
  }
  if (oldestKnown === before) return
  const record = { at: clockOf(null, shell.clock).now(), who: shell.user, action: 'upgrade', arguments: `--finish ${before}`, changed: 1 }
  await directory.audit(record, node)
}

async function upgrade(shell: Shell, options: Options, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  const directory = await shell.openNodes(config)
  if (directory === null) {
    const text = `the queue in the folder ${config.queue_directory} is upgraded by the start of its daemon: only a queue in ${SHARED_TITLES} is upgraded node by node`
    throw new CommandError(EX.unavailable, text)
  }
  try {
    if (options.finish === true) await finish(shell, directory, config.node_name)
    const { version, oldestKnown } = await directory.schema()
    const isFinished = version === oldestKnown
    if (options.json === true)
      return await shell.stdout.write(jsonLine({ schema: version, oldest_usable: oldestKnown, finished: isFinished }))
    const text = isFinished
      ? `the tables have version ${version}; no upgrade waits for its end`
      : `the tables have version ${version}, and versions from ${oldestKnown} on may run: deferd queue upgrade --finish ends the upgrade`
    return await shell.stdout.write(`${text}\n`)
  } finally {
    await directory.close()
  }
}

export function addQueueUpgrade(parent: Command, shell: Shell): void {
  subcommand(parent, 'upgrade', 'show or end the upgrade of a queue that several nodes share')
    .option('--finish', 'end the upgrade: older versions of deferd are refused from then on (exit code 78)')
    .option('--json', 'print the state as a JSON object')
    .addHelpText(
      'after',
      `
The first node of a new version adds to the tables, so that nodes of the version before go on. When all nodes are upgraded, --finish
makes the changes that older versions do not survive. It is refused while an older one runs (exit code 75).

Example, after the last node was upgraded:
  deferd queue upgrade --finish`,
    )
    .action((options: Options, command: Command) => upgrade(shell, options, command))
}
