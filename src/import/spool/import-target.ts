/** Opens the queue of a configuration for mail that is taken over, as its owner: no daemon can run meanwhile. */
import { DestinationPolicies } from '../../config/destination-policies.ts'
import type { Account } from '../../daemon/account.ts'
import type { RelaySettings } from '../../daemon/relay.ts'
import { openRoutingTables } from '../../delivery/routing/routing-tables.ts'
import { Router } from '../../delivery/routing/router.ts'
import type { Submitted } from '../../queue/intake/intake.ts'
import { Rewriting } from '../../rewriting/rewriting.ts'
import { openTables, type Tables } from '../../rewriting/tables.ts'
import { createQueueFolder } from '../../store/queue-folder.ts'
import type { NewMessage } from '../../store/queue-store.ts'
import { openStore, type OwnedStore } from '../../store/sqlite/open-store.ts'
import type { MachineClock } from '../../system/clock.ts'
import { QueueClock } from '../../system/queue-clock.ts'
import type { Random } from '../../system/random.ts'
import { queueSubmission, type SubmissionRules } from './submitted-message.ts'
import type { TakeOverTarget } from './take-over.ts'
import { scheduledRecipient, type TakeOverRules } from './taken-message.ts'

export interface ImportTarget extends TakeOverTarget, Pick<OwnedStore, 'reader' | 'close'> {}

interface TargetDeps {
  /** The user who owns the queue; null for the user of the process. */
  readonly account: Account | null
  readonly machine: MachineClock
  readonly random: Random
}

/** The import writes a queue in a folder only (EX_USAGE). */
class QueueElsewhere extends Error {
  override readonly name = 'QueueElsewhere'
  readonly exitCode = 64

  constructor() {
    super(
      'the import writes a queue in a folder, and queue_database is set: import with -o queue_database= and let a daemon deliver that queue',
    )
  }
}

/** Rejects with QueueElsewhere for a queue in PostgreSQL, with QueueInUse when a daemon or a command owns the queue, and with the other errors of openStore. */
export async function openTarget(settings: RelaySettings, deps: TargetDeps): Promise<ImportTarget> {
  const { config } = settings
  if (config.queue_database !== '') throw new QueueElsewhere()
  const { store, reader, close } = await openAs(deps.account, config.queue_directory)
  const clock = new QueueClock(deps.machine)
  clock.resume(await reader.clockRecord(), config.maximal_backoff_time)
  const tables = settings.tables ?? openTables(config).tables
  const rules = rulesOf(settings, tables, deps.random)
  const submission: SubmissionRules = {
    config,
    clock,
    rewriting: Rewriting.of(config, tables),
    prepare: (entry) => prepared(entry, rules),
  }
  return {
    store,
    reader,
    close,
    rules,
    times: () => ({ now: clock.now(), offset: clock.wallOffset() }),
    submit: (candidate) => queueSubmission(candidate, store, submission),
  }
}

/** Creates the files of the queue as their owner. Their later use needs no rights of its own. */
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
  const aliases = tables.get('alias_maps')
  // Postfix has rewritten the mail of its queues, except for aliases of local users, which it replaces at delivery.
  const atDelivery: Tables = aliases === undefined ? new Map() : new Map([['alias_maps', aliases]])
  const rewriting = Rewriting.of({ ...config, masquerade_domains: [], always_bcc: '' }, atDelivery)
  return {
    myorigin: config.myorigin,
    longestWait: config.maximal_backoff_time,
    destinationOf: (address, sender) => router.route(address, sender).destination,
    policies: new DestinationPolicies(config),
    expand: (recipients) => rewriting?.recipients(recipients) ?? recipients,
    draw: (key) => random.draw(key),
  }
}

/** A submission, due at once. */
function prepared({ message, recipients, content, maildropFile }: Submitted, rules: TakeOverRules): NewMessage {
  const entered = recipients.map((recipient) => scheduledRecipient(recipient, message, rules))
  return { message, recipients: entered, content, givesContent: true, maildropFile }
}
