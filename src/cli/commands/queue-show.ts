/** `deferd queue show`: explains why a message is still queued and what happens next. */
import type { Command } from 'commander'
import { ProviderDirectory } from '../../config/provider-directory.ts'
import { DestinationPolicies } from '../../config/destination-policies.ts'
import { configOf, subcommand } from '../shell/config-options.ts'
import { recordsByName } from '../../presentation/recipient-status.ts'
import { displayOf } from '../shell/display.ts'
import { withReader, type Shell } from '../shell/shell.ts'
import { storyJson } from '../../resources/message-story-json.ts'
import { storyText } from '../render/message-details.ts'
import { jsonLine } from '../../presentation/text.ts'
import { storyOf } from './queue-cat.ts'

async function show(shell: Shell, id: string, options: { readonly json?: true }, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  await withReader(shell, config, async ({ reader, clock }) => {
    const story = await storyOf(reader, id)
    const live = options.json === true ? null : await shell.liveDestinations(config)
    const providers = new ProviderDirectory()
    const members = config.provider.size === 0 ? [] : await reader.records.providerMembers.all()
    for (const { destination, provider } of members) providers.set(destination, provider)
    const policies = new DestinationPolicies(config, providers)
    const facts = { story, records: recordsByName(await reader.destinationRecords()), live, policies, clock, wall: clock.wall }
    await shell.stdout.write(options.json === true ? jsonLine(storyJson(facts)) : storyText(facts, displayOf(shell)))
  })
}

export function addQueueShow(parent: Command, shell: Shell): void {
  subcommand(parent, 'show <id>', 'explain one message: why it is queued, and what happens next')
    .option('--json', 'one JSON object: the members of `queue list --json`, all recipients, history, rule, waits_for')
    .addHelpText('after', '\nAlso shows messages that have left the queue, for history_retention.')
    .action((id: string, options: { readonly json?: true }, command: Command) => show(shell, id, options, command))
}
