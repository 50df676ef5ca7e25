/** `deferd webhook`: subscriptions of programs to events. Those of the configuration are listed too, and can be tested and replayed. */
import { InvalidArgumentError, Option, type Command } from 'commander'
import type { Config } from '../../config/options.ts'
import { EVENT_FORMATS, type SubscriptionTerms, maskedTarget } from '../../config/values/tables/event-tables.ts'
import { signingSecrets } from '../../outbox/configured-subscriptions.ts'
import { checkValue } from '../../presentation/checked-value.ts'
import { eventsBehind } from '../../resources/events-behind.ts'
import { subscriptionJson, type SubscriptionJson, type TestAnswerJson } from '../../resources/subscription-json.ts'
import { grouped, instantOf, jsonLine, maskControls, plural, relative, span, tookText, triesText } from '../../presentation/text.ts'
import type { Subscription } from '../../store/outbox/subscription.ts'
import { newSigningSecret } from '../../subscriptions/new-secret.ts'
import { sendTestEvent } from '../../subscriptions/test-event.ts'
import {
  newSubscriptionShape,
  patternsIn,
  replayTime,
  type NewSubscriptionRequest,
  type Replayed,
} from '../../subscriptions/subscription-changes.ts'
import { openTargets } from '../../subscriptions/targets.ts'
import { DAY, MINUTE, type Duration, type WallTime } from '../../system/clock.ts'
import { systemNet } from '../../system/system-net.ts'
import { VERSION } from '../../system/version.ts'
import { configOf, countArgument, durationArgument, subcommand } from '../shell/config-options.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { QueueClient } from '../shell/queue-client.ts'
import { segment } from '../queue-client/api-connection.ts'
import { resourceOf, withSource, type OpenedReader, type Shell } from '../shell/shell.ts'

interface AddOptions {
  readonly types?: string
  readonly destinations?: string
  readonly senders?: string
  readonly allowPrivate?: true
  readonly format: SubscriptionTerms['format']
  readonly batch: number
}

async function withClient<T>(shell: Shell, config: Config, work: (client: QueueClient) => Promise<T>): Promise<T> {
  const client = await shell.openQueueClient(config)
  try {
    return await work(client)
  } finally {
    await client.close()
  }
}

/** The arguments of `webhook add` by the members of its request. */
const ARGUMENTS: ReadonlyMap<string, string> = new Map([
  ['name', 'NAME'],
  ['to', 'URL'],
  ...['types', 'destinations', 'senders', 'batch'].map((member) => [member, `--${member}`] as const),
])

/** Checks a request before it is sent, so that an error names the argument of the command line. Throws CommandError (64). */
function checked(request: NewSubscriptionRequest): NewSubscriptionRequest {
  const reading = checkValue(newSubscriptionShape, request)
  if (reading.ok) return reading.value
  const mistakes = reading.invalid.map(({ path, detail }) => `${ARGUMENTS.get(String(path[0])) ?? path.join('.')}: ${detail}`)
  throw new CommandError(EX.usage, maskControls(mistakes.join('; ')))
}

/** Parses the time of --since. Throws InvalidArgumentError. */
function sinceArgument(text: string): Duration {
  const reading = replayTime.safeParse(durationArgument(text))
  if (!reading.success) throw new InvalidArgumentError('Expected a time above 0, such as 30m, 2h or 1d.')
  return reading.data
}

const PRINTED_ONCE = 'this is the only time that the secret is shown; the receiver verifies the header webhook-signature with it'

async function add(shell: Shell, [name, to]: readonly [string, string], options: AddOptions, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  const secret = newSigningSecret(shell.random)
  const request = checked({
    name,
    to,
    types: patternsIn(options.types ?? ''),
    destinations: patternsIn(options.destinations ?? ''),
    senders: patternsIn(options.senders ?? ''),
    allowPrivate: options.allowPrivate === true,
    format: options.format,
    batch: options.batch,
    secret,
    who: shell.user,
  })
  await withClient(shell, config, (client) => client.addSubscription(request))
  await shell.stdout.write(`${secret}\n`)
  await shell.stderr.write(`deferd: ${PRINTED_ONCE}\n`)
}

async function remove(shell: Shell, name: string, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  await withClient(shell, config, (client) => client.removeSubscription({ name, who: shell.user }))
  await shell.stdout.write(`${maskControls(name)}: removed\n`)
}

async function changeSecret(shell: Shell, name: string, { overlap }: { readonly overlap: Duration }, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  const secret = newSigningSecret(shell.random)
  await withClient(shell, config, (client) => client.changeSecret({ name, secret, overlap, who: shell.user }))
  await shell.stdout.write(`${secret}\n`)
  await shell.stderr.write(`deferd: ${PRINTED_ONCE}; the old one signs beside it for ${span(overlap)}\n`)
}

interface ReplayOptions {
  readonly since?: Duration
  readonly parked?: true
  readonly event?: string
}

function replayedBy({ since, parked, event }: ReplayOptions): Replayed {
  if ([since, parked, event].filter((one) => one !== undefined).length > 1)
    throw new CommandError(EX.usage, '--since TIME, --parked and --event ID exclude each other')
  if (since !== undefined) return { kind: 'since', ago: since }
  if (event !== undefined) return { kind: 'one', id: event }
  return { kind: parked === true ? 'parked' : 'waiting' }
}

async function replay(shell: Shell, name: string, options: ReplayOptions, command: Command): Promise<void> {
  const events = replayedBy(options)
  const { config } = await configOf(shell, command)
  const count = await withClient(shell, config, (client) => client.replayEvents({ name, events, who: shell.user }))
  const what = events.kind === 'waiting' ? 'to be sent now' : 'to be sent again'
  await shell.stdout.write(`${maskControls(name)}: ${plural(count, 'event')} ${what}\n`)
}

/** Sends one event of the type `test` from here. */
async function testFromHere(shell: Shell, config: Config, name: string, { reader, clock }: OpenedReader): Promise<TestAnswerJson> {
  const found = (await reader.allSubscriptions()).find((one) => one.name === name)
  if (found === undefined)
    throw new CommandError(EX.data, `there is no subscription ${maskControls(name)}: deferd webhook list shows all names`)
  const write = (text: string) => shell.stdout.write(text)
  const { send, close } = openTargets({ net: systemNet, clock, source: () => config.myhostname, version: VERSION, write })
  const secretsOf = (one: Subscription) => signingSecrets(one, config, clock.now())
  try {
    return await sendTestEvent(found, { send, secretsOf, clock })
  } finally {
    close()
  }
}

async function test(shell: Shell, name: string, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  const { to, taken, answer, took } = await withSource(shell, config, async (source) =>
    source.api === null
      ? testFromHere(shell, config, name, source)
      : ((await source.api.json({ method: 'POST', path: `/subscriptions/${segment(name)}/test`, limit: TEST_LIMIT })) as TestAnswerJson),
  )
  await shell.stdout.write(
    `${maskControls(`${name}: ${to} ${taken ? 'took the event' : 'did not take the event'}: ${answer}, after ${tookText(took)}`)}\n`,
  )
  if (!taken) throw new CommandError(EX.temporary, 'the test event was not taken')
}

/** Time without an answer after which the test by a relay is abandoned. */
const TEST_LIMIT: Duration = MINUTE

/** `416 events of all types behind, the oldest for 17m 53s` */
const lagText = (one: SubscriptionJson, now: WallTime): string =>
  one.behind === 0
    ? 'nothing waits'
    : `${eventsBehind(one)} behind${one.oldest_time === null ? '' : `, the oldest for ${span(now - instantOf(one.oldest_time))}`}`

/** A subscription as one paragraph: target, progress, and last answer. */
function linesOf(one: SubscriptionJson, now: WallTime): string {
  const { name, owner, to, types, state, why, parked, lost, tries } = one
  const { next_try_time: next, last_answer: answer, last_answer_time: answered } = one
  const facts = [
    `${to === '' ? 'read by programs' : maskedTarget(to)}${owner === 'configuration' ? ' ([events] table)' : ''}`,
    `types ${types.length === 0 ? 'all' : types.join(', ')}`,
    ...(state === 'disabled' ? [`disabled: ${why ?? ''}`] : []),
    // A program that reads events does so at its own pace.
    ...(to === '' ? [] : [lagText(one, now)]),
    ...(parked === 0 ? [] : [`${grouped(parked)} parked`]),
    ...(lost === 0 ? [] : [`${grouped(lost)} lost`]),
    ...(tries === 0 ? [] : [triesText(tries, next === null ? null : instantOf(next), now)]),
    answer === null ? 'no answer yet' : `last answer ${relative(instantOf(answered ?? 0), now)}: ${answer}`,
  ]
  return `${maskControls(`${name}: ${facts.join('; ')}`)}\n`
}

async function list(shell: Shell, { json }: { readonly json?: true }, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  await withSource(shell, config, async (source) => {
    const { subscriptions: all } = await resourceOf(source, '/subscriptions', async ({ reader, clock }) => ({
      subscriptions: (await reader.allSubscriptions()).map((one) => subscriptionJson(one, clock.wall, true)),
    }))
    const now = source.clock.wall.now()
    await shell.stdout.write(all.map((one) => (json === true ? jsonLine(one) : linesOf(one, now))).join(''))
  })
}

export function addWebhook(program: Command, shell: Shell): void {
  const parent = program.command('webhook').description('manage the subscriptions of programs to events')
  subcommand(parent, 'add <name> <url>', 'send events to a URL, and print the secret that signs them once')
    .option('--types <list>', 'types of events, such as recipient.*,message.accepted (default: all)')
    .option('--destinations <list>', 'only mail of these destinations; * matches any text')
    .option('--senders <list>', 'only mail of these envelope senders; * matches any text')
    .option('--allow-private', 'also private addresses, and http://')
    .addOption(new Option('--format <format>', 'form of the body').choices([...EVENT_FORMATS]).default('deferd'))
    .option('--batch <number>', 'events in one request, at most 1000; above 1, the body is an array', countArgument, 1)
    .addHelpText(
      'after',
      `
Requests follow the Standard Webhooks specification. An event is sent again until the URL answers 2xx; it has the same webhook-id each time.

Examples:
  deferd webhook add app https://app.example.com/mail-events --types 'recipient.bounced,recipient.expired'
  deferd webhook test app
  deferd webhook replay app --since 2h`,
    )
    .action((name: string, url: string, options: AddOptions, command: Command) => add(shell, [name, url], options, command))
  subcommand(parent, 'list', 'list subscriptions, with what waits for them and their last answer')
    .option('--json', 'one JSON object per subscription')
    .action((options: { readonly json?: true }, command: Command) => list(shell, options, command))
  subcommand(parent, 'remove <name>', 'remove a subscription, with the events that are parked for it').action(
    (name: string, _options: unknown, command: Command) => remove(shell, name, command),
  )
  subcommand(parent, 'test <name>', 'send one event of the type test, and print the answer').action(
    (name: string, _options: unknown, command: Command) => test(shell, name, command),
  )
  subcommand(parent, 'secret <name>', 'change the secret, and print the new one once')
    .addOption(
      new Option('--overlap <time>', 'time in which the old secret signs beside the new one')
        .argParser(durationArgument)
        .default(DAY, '1d'),
    )
    .action((name: string, options: { readonly overlap: Duration }, command: Command) => changeSecret(shell, name, options, command))
  subcommand(parent, 'replay <name>', 'enable a subscription, and send what waits for it now')
    .option('--since <time>', 'also events that it has had, with the ids that they had: those of 2h, of 3d', sinceArgument)
    .option('--parked', 'the events that the target refused')
    .option('--event <id>', 'one event that it has had: evt_…, as in the field webhook-id')
    .action((name: string, options: ReplayOptions, command: Command) => replay(shell, name, options, command))
}
