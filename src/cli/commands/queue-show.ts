/** `deferd queue show`: explains why a message is still queued and what happens next. */
import type { Command } from 'commander'
import { configOf, subcommand } from '../shell/config-options.ts'
import { displayOf } from '../shell/display.ts'
import { shownDestinations } from '../queue-client/shown-destinations.ts'
import { storyFrom } from '../queue-client/shown-message.ts'
import { withSource, type Shell } from '../shell/shell.ts'
import type { DestinationJson } from '../../resources/destination-json.ts'
import { storyText } from '../render/message-details.ts'
import { jsonLine } from '../../presentation/text.ts'

async function show(shell: Shell, id: string, options: { readonly json?: true }, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  await withSource(shell, config, async (source) => {
    const story = await storyFrom(source, id, { config, live: () => shell.liveDestinations(config) })
    if (options.json === true) return await shell.stdout.write(jsonLine(story))
    const shown = await shownDestinations(shell, config, source)
    const destinations = new Map<string, DestinationJson>()
    for (const name of new Set(story.recipients.map(({ destination }) => destination))) {
      const one = await shown.named(name)
      if (one !== undefined) destinations.set(name, one)
    }
    const facts = { destinations, isRunning: shown.isRunning, clock: source.clock }
    await shell.stdout.write(storyText(story, facts, displayOf(shell)))
  })
}

export function addQueueShow(parent: Command, shell: Shell): void {
  subcommand(parent, 'show <id>', 'explain one message: why it is queued, and what happens next')
    .option('--json', 'one JSON object: the members of `queue list --json`, all recipients, history, rule, waits_for')
    .addHelpText('after', '\nAlso shows messages that have left the queue, for history_retention.')
    .action((id: string, options: { readonly json?: true }, command: Command) => show(shell, id, options, command))
}
