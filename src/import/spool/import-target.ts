/**
 * Opens the queue of a configuration for the mail of an import. A queue in a folder is opened as its owner, so that no daemon can run at
 * the same time; a queue in PostgreSQL as a node without shards, whose mail the other nodes deliver.
 */
import { placeOf } from '../../config/values/queue-place.ts'
import { DestinationPolicies } from '../../config/destination-policies.ts'
import { openChecks } from '../../checks/check-tables.ts'
import type { Config } from '../../config/options.ts'
import type { Account } from '../../daemon/account.ts'
import { arrivalChecks } from '../../relay/check-rules.ts'
import type { RelaySettings } from '../../relay/rules.ts'
import { openRoutingTables } from '../../delivery/routing/routing-tables.ts'
import { Router } from '../../delivery/routing/router.ts'
import type { Submitted } from '../../queue/intake/intake.ts'
import { Matching } from '../../patterns/matching.ts'
import { Rewriting } from '../../rewriting/rewriting.ts'
import { openTables, type Tables } from '../../rewriting/tables.ts'
import { createQueueFolder } from '../../store/folder/queue-folder.ts'
import type { NewMessage } from '../../store/new-message.ts'
import { databaseOf } from '../../store/membership/queue-database.ts'
import { visitQueue } from '../../store/postgres/visiting-node.ts'
import { openStore, type OwnedStore } from '../../store/sqlite/open-store.ts'
import type { MachineClock } from '../../system/clock.ts'
import { QueueClock } from '../../system/queue-clock.ts'
import type { Random } from '../../system/random.ts'
import { queueSubmission, type SubmissionRules } from './submitted-message.ts'
import type { TakeOverTarget } from './take-over.ts'
import { isKeyOfSpool, scheduledRecipient, type TakeOverRules } from './taken-message.ts'

export interface ImportTarget extends TakeOverTarget {
  readonly close: () => Promise<void>
  /** Counts the mail of the queue, to verify the import. */
  readonly counts: () => Promise<MailCounts>
}

export interface MailCounts {
  readonly messages: number
  /**
   * Null where other nodes may queue and deliver mail at the same time; `messages` then counts the messages of all imports, delivered or
   * not.
   */
  readonly recipients: number | null
}

interface OpenedQueue extends Pick<ImportTarget, 'store' | 'close' | 'counts'> {
  readonly clock: QueueClock
}

interface TargetDeps {
  /** The user who owns the queue; null for the user of the process. */
  readonly account: Account | null
  readonly machine: MachineClock
  readonly random: Random
}

/**
 * Rejects with QueueInUse when a daemon or a command owns the queue in the folder, with DatabaseAway or DatabaseUnusable, and with the other
 * errors of openStore.
 */
export async function openTarget(settings: RelaySettings, deps: TargetDeps): Promise<ImportTarget> {
  const { config } = settings
  const { store, clock, close, counts } = await { folder: openFolder, database: openShared }[placeOf(config)](config, deps)
  const tables = settings.tables ?? openTables(config).tables
  const rules = rulesOf(settings, tables, deps.random)
  const matching = new Matching(deps.machine)
  const submission: SubmissionRules = {
    config,
    clock,
    rewriting: Rewriting.of(config, tables),
    checks: arrivalChecks(config, settings.checks ?? openChecks(config).checks, matching),
    prepare: (entry) => prepared(entry, rules),
  }
  return {
    store,
    close: async () => {
      await matching.close()
      await close()
    },
    counts,
    rules,
    clock,
    submit: (candidate) => queueSubmission(candidate, store, submission),
  }
}

async function openFolder(config: Config, { account, machine }: TargetDeps): Promise<OpenedQueue> {
  const { store, reader, close } = await openAs(account, config.queue_directory)
  const clock = new QueueClock(machine)
  clock.resume(await reader.clockRecord(), config.maximal_backoff_time)
  const counts = async (): Promise<MailCounts> => {
    const queues = await reader.counts()
    const sum = (key: 'messages' | 'recipients') => queues.reduce((total, one) => total + one[key], 0)
    return { messages: sum('messages'), recipients: sum('recipients') }
  }
  return { store, clock, close, counts }
}

async function openShared(config: Config, { machine }: TargetDeps): Promise<OpenedQueue> {
  const { node_name: name, node_lease: lease } = config
  const { store, clock, close } = await visitQueue({ database: databaseOf(config), name, lease, machine })
  const counts = async (): Promise<MailCounts> => ({
    messages: (await store.maildropFiles()).filter(isKeyOfSpool).length,
    recipients: null,
  })
  return { store, clock, close, counts }
}

/** Creates the files of the queue as their owner. Files that are open need no further rights. */
async function openAs(account: Account | null, directory: string): Promise<OwnedStore> {
  createQueueFolder(directory, account)
  account?.act()
  try {
    return await openStore(directory, { threads: false, create: true })
  } finally {
    account?.regain()
  }
}

function rulesOf({ config, routingTables }: RelaySettings, tables: Tables, random: Random): TakeOverRules {
  const router = new Router(config, routingTables ?? openRoutingTables(config).tables)
  const rewriting = tables.has('alias_maps') ? Rewriting.of(config, tables) : null
  return {
    myorigin: config.myorigin,
    keepsTexts: config.queue_index_headers,
    longestWait: config.maximal_backoff_time,
    destinationOf: (address, sender) => router.route(address, sender).destination,
    policies: new DestinationPolicies(config),
    // Each recipient alone: Postfix has removed duplicates before.
    expand: (recipients) => (rewriting === null ? recipients : recipients.flatMap((one) => rewriting.ofLocalAlias(one))),
    draw: (key) => random.draw(key),
  }
}

function prepared({ message, recipients, content, maildropFile, hold }: Submitted, rules: TakeOverRules): NewMessage {
  const entered = recipients.map((recipient) => scheduledRecipient(recipient, message, rules))
  return { message, recipients: entered, content, givesContent: true, maildropFile, hold }
}
