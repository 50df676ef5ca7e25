/** `deferd queue show`: explains why a message is still queued and what happens next. */
import type { Command } from 'commander'
import { configOf, subcommand } from '../../shell/config-options.ts'
import { displayOf } from '../../shell/display.ts'
import { shownDestinations } from '../../queue-client/shown-destinations.ts'
import { sessionFrom } from '../../queue-client/shown-session.ts'
import { storyFrom } from '../../queue-client/shown-message.ts'
import { withSource, type Shell } from '../../shell/shell.ts'
import type { DestinationJson } from '../../../resources/destination-json.ts'
import { storyText } from '../../render/message-details.ts'
import { jsonLine } from '../../../presentation/text.ts'

interface Options {
  readonly json?: true
  /** Id of a dialogue; true for that of the last attempt that has one. */
  readonly session?: string | true
}

async function show(shell: Shell, id: string, options: Options, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  await withSource(shell, config, async (source) => {
    if (options.session !== undefined) {
      const session = await sessionFrom(source, id, options.session)
      return await shell.stdout.write(options.json === true ? jsonLine(session) : session.text)
    }
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
    .option('--session [id]', 'only the dialogue with the host: that of the last attempt that has one, or the one with this id')
    .addHelpText(
      'after',
      `
Also shows messages that have left the queue, for history_retention. Failed attempts have a dialogue (session_transcripts): what
both sides said, with the milliseconds since the connection began, without content, passwords and tokens.

Examples:
  deferd queue show 4PXrX0JVz2
  deferd queue show 4PXrX0JVz2 --session > dialogue.txt`,
    )
    .action((id: string, options: Options, command: Command) => show(shell, id, options, command))
}
