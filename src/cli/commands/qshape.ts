/**
 * `qshape` and `deferd queue shape`: how old the mail is, and where it goes to or comes from.
 */
import type { Command } from 'commander'
import type { Config } from '../../config/options.ts'
import type { QueueName } from '../../queue/reader.ts'
import { configOf, countArgument, subcommand } from '../command.ts'
import { getopt } from '../getopt.ts'
import { CommandError, EX, type Shell } from '../shell.ts'
import { Shape, type ShapeLayout } from '../shape.ts'
import { harmless, jsonLine } from '../text.ts'
import { configFor } from './postqueue.ts'

interface ShapeOrder {
  readonly layout: ShapeLayout
  readonly queues: readonly QueueName[]
  /** Count messages by the domain of their sender. */
  readonly bySender: boolean
  readonly json?: true | undefined
}

const PAGE = 2_000
const QUEUES: readonly QueueName[] = ['incoming', 'active', 'deferred', 'hold', 'corrupt']
const ROWS_ON_TERMINAL = 20

/** Queue names; `maildrop` is one of Postfix's, and empty here as soon as the daemon runs. */
function queuesOf(names: readonly string[], byDefault: readonly QueueName[]): readonly QueueName[] {
  if (names.length === 0) return byDefault
  return names
    .filter((name) => name !== 'maildrop')
    .map((name) => {
      const queue = QUEUES.find((known) => known === name)
      if (queue === undefined) throw new CommandError(EX.usage, `there is no queue ${harmless(name)}; there are ${QUEUES.join(', ')}`)
      return queue
    })
}

async function printShape(shell: Shell, config: Config, { layout, queues, bySender, json }: ShapeOrder): Promise<void> {
  const reader = await shell.openReader(config)
  const now = shell.clock.now()
  const shape = new Shape(layout)
  try {
    let lastMessage = -1
    for (let after = 0; queues.length > 0;) {
      const page = reader.ages({ after, limit: PAGE, queues, now })
      for (const { sender, address, arrivedAt, message } of page) {
        if (!bySender) shape.count(address, now - arrivedAt)
        else if (message !== lastMessage) shape.count(sender, now - arrivedAt)
        lastMessage = message
      }
      if (page.length < PAGE) break
      after = page.at(-1)?.cursor ?? after
    }
  } finally {
    reader.close()
  }
  await shell.stdout.write(json === true ? shape.toJson().map(jsonLine).join('') : `${shape.toString()}\n`)
}

const number = (text: string | undefined, byDefault: number): number => (text !== undefined && Number(text) > 0 ? Number(text) : byDefault)

export async function qshape(shell: Shell, args: readonly string[]): Promise<void> {
  const { options, operands } = getopt('qshape', args, 'b:c:lm:n:N:o:pst:w:')
  const value = (letter: string) => options.findLast(({ name }) => name === letter)?.value
  const given = (letter: string) => value(letter) !== undefined
  const { config } = await configFor(shell, 'qshape', options)
  const onTerminal = shell.stdout.columns !== null
  await printShape(shell, config, {
    queues: queuesOf(operands, ['incoming', 'active']),
    bySender: given('s'),
    layout: {
      buckets: number(value('b'), 10),
      minutes: number(value('t'), 5),
      linear: given('l'),
      width: Math.max(80, number(value('w'), 80)),
      parents: given('p') ? number(value('m'), 5) : null,
      rows: onTerminal ? number(value('n'), ROWS_ON_TERMINAL) : undefined,
    },
  })
}

interface Options {
  readonly senders?: true
  readonly parents?: true
  readonly buckets?: number
  readonly minutes?: number
  readonly linear?: true
  readonly json?: true
}

export function addQueueShape(parent: Command, shell: Shell): void {
  subcommand(parent, 'shape [queue...]', 'how old the mail is, by destination domain (qshape)')
    .option('--senders', 'by the domain of the sender, counting messages')
    .option('--parents', 'also parent domains with five subdomains or more')
    .option('--buckets <n>', 'age columns (10)', countArgument)
    .option('--minutes <n>', 'minutes in the first column (5)', countArgument)
    .option('--linear', 'equal columns, instead of each twice as wide as the one before')
    .option('--json', 'one JSON object per row, the total first')
    .addHelpText('after', '\nAll queues unless some are named. Columns are headed by their upper limits in minutes.')
    .action(async (names: readonly string[], options: Options, command: Command) => {
      const { config } = await configOf(shell, command)
      await printShape(shell, config, {
        queues: queuesOf(
          names,
          QUEUES.filter((name) => name !== 'corrupt'),
        ),
        bySender: options.senders === true,
        json: options.json,
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
