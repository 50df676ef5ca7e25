/** `deferd queue shape`: the age of queued mail by destination or sender domain, as Postfix's qshape(1) counts it. */
import { Option, type Command } from 'commander'
import type { Config } from '../../../config/options.ts'
import { configOf, countArgument, subcommand } from '../../shell/config-options.ts'
import { CommandError, EX } from '../../shell/exit.ts'
import { queryOf } from '../../queue-client/api-connection.ts'
import type { MessageRowJson } from '../../../resources/message-row-json.ts'
import { shownSender } from '../../../mail/envelope.ts'
import type { Clock, Duration } from '../../../system/clock.ts'
import { type OpenedReader, type RelayApi, type Shell, withSource } from '../../shell/shell.ts'
import { addressName, domainName, Shape, type ShapeLayout } from '../../render/qshape-table.ts'
import { instantOf, maskControls, jsonLine } from '../../../presentation/text.ts'
import { QUEUE_NAMES, type QueueName } from '../../../mail/message.ts'

interface ShapeOrder {
  readonly layout: ShapeLayout
  readonly queues: readonly QueueName[]
  /** True to count messages by sender domain. */
  readonly bySender: boolean
  /** True to count by whole addresses instead of domains. */
  readonly byAddress?: boolean
  /** Form of the output; a table when absent. */
  readonly form?: 'json' | 'tsv' | undefined
}

const PAGE = 2_000

/**
 * Parses queue names. `maildrop` is accepted as in Postfix, but no messages are counted for it. Throws CommandError (64) for
 * unknown names.
 */
export function queuesOf(names: readonly string[], byDefault: readonly QueueName[]): readonly QueueName[] {
  if (names.length === 0) return byDefault
  return names
    .filter((name) => name !== 'maildrop')
    .map((name) => {
      const queue = QUEUE_NAMES.find((known) => known === name)
      if (queue === undefined)
        throw new CommandError(EX.usage, `there is no queue ${maskControls(name)}; there are ${QUEUE_NAMES.join(', ')}`)
      return queue
    })
}

/** A live recipient. The recipients of a message follow one another. */
interface Aged {
  readonly sender: string
  readonly address: string
  readonly message: number | string
  readonly age: Duration
}

async function* agesOf({ reader, clock }: OpenedReader, queues: readonly QueueName[]): AsyncGenerator<Aged> {
  const now = clock.now()
  for (let after = 0; queues.length > 0;) {
    const page = await reader.ages({ after, limit: PAGE, queues })
    for (const { sender, address, arrivedAt, message } of page) yield { sender, address, message, age: now - arrivedAt }
    if (page.length < PAGE) return
    after = page.at(-1)?.cursor ?? after
  }
}

async function* remoteAges(api: RelayApi, clock: Clock, queues: readonly QueueName[]): AsyncGenerator<Aged> {
  const now = clock.wall.now()
  for (const queue of queues)
    for await (const row of api.rows<MessageRowJson>(`/messages${queryOf({ queue, form: 'rows' })}`)) {
      const sender = row.sender === shownSender('') ? '' : row.sender
      for (const address of row.recipients) yield { sender, address, message: row.queue_id, age: now - instantOf(row.received_time) }
    }
}

export async function printShape(
  shell: Shell,
  config: Config,
  { layout, queues, bySender, byAddress = false, form }: ShapeOrder,
): Promise<void> {
  const shape = new Shape(layout, byAddress ? addressName : domainName)
  await withSource(shell, config, async (source) => {
    let last: Aged['message'] | null = null
    for await (const { sender, address, message, age } of source.api === null
      ? agesOf(source, queues)
      : remoteAges(source.api, source.clock, queues)) {
      if (!bySender) shape.count(address, age)
      else if (message !== last) shape.count(sender, age)
      last = message
    }
  })
  await shell.stdout.write(textOf(shape, form))
}

function textOf(shape: Shape, form: ShapeOrder['form']): string {
  if (form === 'json') return shape.toJson().map(jsonLine).join('')
  return form === 'tsv' ? `${shape.toValues().join('\n')}\n` : `${shape.toString()}\n`
}

interface Options {
  readonly senders?: true
  readonly addresses?: true
  readonly parents?: true
  readonly buckets?: number
  readonly minutes?: number
  readonly linear?: true
  readonly tsv?: true
  readonly json?: true
}

export function addQueueShape(parent: Command, shell: Shell): void {
  subcommand(parent, 'shape [queue...]', 'print the age of queued mail by destination domain (qshape)')
    .option('--senders', 'count messages by sender domain')
    .option('--addresses', 'count by whole addresses instead of domains')
    .option('--parents', 'add rows for parent domains with at least five subdomains')
    .option('--buckets <n>', 'age columns (10)', countArgument)
    .option('--minutes <n>', 'minutes in the first column (5)', countArgument)
    .option('--linear', 'columns of equal width instead of doubling widths')
    .addOption(new Option('--tsv', 'exact tab-separated values, without headings').conflicts('json'))
    .option('--json', 'one JSON object per row, the total first')
    .addHelpText(
      'after',
      `
All queues by default. Column headings are upper limits in minutes. --tsv has the columns name, total, and one count per age column; the
first row is TOTAL.`,
    )
    .action(async (names: readonly string[], options: Options, command: Command) => {
      if (options.addresses === true && options.parents === true)
        throw new CommandError(EX.usage, '--parents counts domains: give either --parents or --addresses')
      const { config } = await configOf(shell, command)
      await printShape(shell, config, {
        queues: queuesOf(
          names,
          QUEUE_NAMES.filter((name) => name !== 'corrupt'),
        ),
        bySender: options.senders === true,
        byAddress: options.addresses === true,
        form: options.json === true ? 'json' : options.tsv === true ? 'tsv' : undefined,
        layout: {
          buckets: Math.max(1, options.buckets ?? 10),
          minutes: Math.max(1, options.minutes ?? 5),
          linear: options.linear === true,
          width: Math.max(80, shell.stdout.columns ?? 80),
          parents: options.parents === true ? 5 : null,
        },
      })
    })
}
