/**
 * The FILTERs by which commands choose messages. All that are given must hold.
 */
import { Option, type Command } from 'commander'
import type { Duration, Instant } from '../mail/clock.ts'
import { normalizeAddress } from '../mail/address.ts'
import type { QueueFilter } from '../queue/reader.ts'
import { countArgument, durationArgument } from './command.ts'

export interface FilterOptions {
  readonly sender?: string
  readonly recipient?: string
  readonly destination?: string
  readonly queue?: Exclude<QueueFilter['queue'], undefined>
  readonly olderThan?: Duration
  readonly attemptsOver?: number
  readonly reply?: string
  readonly limit?: number
}

const QUEUES = ['incoming', 'active', 'deferred', 'hold', 'corrupt']

export const withFilters = (command: Command, queues: readonly string[] = QUEUES): Command =>
  command
    .option('--sender <address>', 'envelope sender; * stands for anything, <> for the null sender')
    .option('--recipient <address>', 'some recipient that is still to be reached; * stands for anything')
    .option('--destination <name>', 'where a recipient waits, as `deferd destination list` names it; * stands for anything')
    .addOption(new Option('--queue <name>', 'which queue').choices(queues))
    .option('--older-than <time>', 'arrived longer ago than this: 30m, 2h, 1d', durationArgument)
    .option('--attempts-over <n>', 'tried more often than this', countArgument)
    .option('--reply <text>', 'the last reply or reason contains this text')
    .option('--limit <n>', 'at most so many messages, the oldest first', countArgument)

/** Is any filter given? */
export const isFiltered = (filters: FilterOptions): boolean => Object.keys(filters).some((name) => name !== 'limit')

const nullSender = (address: string): string => (address === '<>' || address.toLowerCase() === 'mailer-daemon' ? '' : address)

export function toFilter(options: FilterOptions, now: Instant): QueueFilter {
  return {
    sender: options.sender === undefined ? undefined : normalizeAddress(nullSender(options.sender)),
    recipient: options.recipient === undefined ? undefined : normalizeAddress(options.recipient),
    destination: options.destination?.toLowerCase(),
    queue: options.queue,
    arrivedBefore: options.olderThan === undefined ? undefined : now - options.olderThan,
    attemptsOver: options.attemptsOver,
    reply: options.reply,
  }
}
