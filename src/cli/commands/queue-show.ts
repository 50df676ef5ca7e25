/**
 * `deferd queue show`: why a message is still here and what happens next.
 */
import type { Command } from 'commander'
import { configOf, subcommand } from '../command.ts'
import { recordsByName } from '../standing.ts'
import type { Shell } from '../shell.ts'
import { storyJson, storyText } from '../story.ts'
import { jsonLine } from '../text.ts'
import { storyOf } from './queue-cat.ts'

async function show(shell: Shell, id: string, options: { readonly json?: true }, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  const reader = await shell.openReader(config)
  try {
    const story = storyOf(reader, id, shell.clock.now())
    const live = options.json === true ? null : await shell.liveDestinations(config)
    const facts = { story, records: recordsByName(reader.destinationRecords()), live, config, clock: shell.clock }
    await shell.stdout.write(options.json === true ? jsonLine(storyJson(facts)) : storyText(facts))
  } finally {
    reader.close()
  }
}

export function addQueueShow(parent: Command, shell: Shell): void {
  subcommand(parent, 'show <id>', 'everything about one message: why it is here, what happens next')
    .option('--json', 'one JSON object: the members of `queue list --json`, all recipients, history, rule, waits_for')
    .addHelpText('after', '\nWorks for some time after the message has left (history_retention).')
    .action((id: string, options: { readonly json?: true }, command: Command) => show(shell, id, options, command))
}
