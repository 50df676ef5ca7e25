/** Filter options that select messages. A message must match all given filters. */
import { InvalidArgumentError, Option, type Command } from 'commander'
import type { QueueFilter } from '../../store/queue-reader.ts'
import type { MessageConditions } from '../../queue/message-filter.ts'
import { STATUS_PATTERN } from '../../patterns/filter-pattern.ts'
import { countArgument, durationArgument } from '../shell/config-options.ts'

export interface FilterOptions extends MessageConditions {
  readonly queue?: NonNullable<QueueFilter['queue']>
  readonly limit?: number
}

const QUEUES = ['incoming', 'active', 'deferred', 'hold', 'corrupt']

/** An enhanced status code (RFC 3463), or a pattern of one. */
function statusArgument(text: string): string {
  if (STATUS_PATTERN.test(text)) return text
  throw new InvalidArgumentError('Expected a code such as 4.7.0, or a pattern such as 4.7.*.')
}

/** The option of each condition; null for a condition that has another form on the command line. */
const optionsFor = (queues: readonly string[]) =>
  ({
    queueId: null,
    sender: new Option('--sender <address>', 'envelope sender; * matches any text, <> is the null sender'),
    recipient: new Option('--recipient <address>', 'a recipient without a final outcome; * matches any text'),
    destination: new Option('--destination <name>', 'destination of a recipient, as in `deferd destination list`; * matches any text'),
    queue: new Option('--queue <name>', 'queue that holds the message').choices(queues),
    arrivedBefore: new Option('--older-than <time>', 'arrived longer ago than this: 30m, 2h, 1d').argParser(durationArgument),
    arrivedAfter: new Option('--younger-than <time>', 'arrived less long ago than this: 30m, 2h, 1d').argParser(durationArgument),
    attemptsOver: new Option('--attempts-over <n>', 'more attempts for a recipient than this number').argParser(countArgument),
    status: new Option('--status <code>', 'enhanced status code of the last attempt of a recipient: 4.7.0; * matches any text').argParser(
      statusArgument,
    ),
    reply: new Option('--reply <text>', 'text in the last reply or reason of a recipient'),
  }) satisfies Record<keyof QueueFilter, Option | null>

export function withFilters(command: Command, queues: readonly string[] = QUEUES): Command {
  for (const option of Object.values(optionsFor(queues))) if (option !== null) command.addOption(option)
  return command.option('--limit <n>', 'maximum number of messages, the oldest first', countArgument)
}
