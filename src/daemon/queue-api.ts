/** Connects the API to the open queue. Its routes stay when the queue is closed; until it is opened again, they answer 503. */
import { Api } from '../api/api.ts'
import type { RecordChanges } from '../api/record-routes.ts'
import { removePolicy } from '../delivery/sts/policy-removal.ts'
import { oauthPlaces } from '../delivery/tls/oauth-uses.ts'
import { oauthJson } from '../resources/oauth-json.ts'
import { readPasswords } from './delivery-secrets.ts'
import { ANY_USER } from '../oauth/token-requests.ts'
import type { QueueView } from '../queries/queue-view.ts'
import type { ToldAddresses } from '../mail/told-addresses.ts'
import type { SmtpReply } from '../mail/smtp-reply.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { OutboxUpkeep } from '../outbox/outbox-upkeep.ts'
import type { Operations } from '../queue/operations.ts'
import { planOf } from '../queue/operation-plan.ts'
import { StoreUnavailable } from '../store/queue-store.ts'
import { createReader } from '../store/reader-methods.ts'
import { completeTally } from '../store/counts/queue-tally.ts'
import type { Clock } from '../system/clock.ts'
import { systemRandom } from '../system/system-random.ts'
import { liveQueue, sharedNodes } from './live-queue.ts'
import { relayHealth } from './relay-health.ts'
import type { OpenParts } from './opening.ts'
import type { Services } from './services.ts'

interface QueueApiDeps {
  readonly clock: Clock
  readonly loaded: () => LoadedConfig
  /** Addresses in events. */
  readonly addresses: ToldAddresses
  /** Null while no queue is open. */
  readonly parts: () => ApiParts | null
}

/** Services of which a relay in a world has some. */
type ApiServices = Pick<Services, 'operations' | 'subscriptions'> & {
  readonly [Part in 'sender' | 'schedules' | 'domainChecks']: Services[Part] | null
}

export type ApiParts = Pick<OpenParts, 'relay' | 'store' | 'reader' | 'node' | 'accessEntries'> & {
  readonly outbox: Pick<OutboxUpkeep, 'onPublished'>
  /** Null until deliveries have begun. */
  readonly services: ApiServices | null
}

export const NOT_OPEN = 'the queue is not open: the daemon starts, or this node joins it'

const NO_SENDER = 'this relay sends no events: its world sends those of its own webhooks'

/** Reply of a drained node to mail. */
const DRAINED: SmtpReply = { code: 421, status: '4.3.2', text: 'this node takes no mail, because it is drained: use another one' }

/** The part. Throws without it. */
function begun<T>(part: T | null): T {
  if (part === null) throw new StoreUnavailable(NOT_OPEN)
  return part
}

function subscriptionPort({ subscriptions, sender }: ApiServices): ReturnType<QueueView['subscriptions']> {
  return {
    add: (request) => subscriptions.add(request),
    remove: (removal) => subscriptions.remove(removal),
    changeSecret: (request) => subscriptions.changeSecret(request),
    replay: (request) => subscriptions.replay(request),
    test: async (subscription) => {
      if (sender === null) throw new StoreUnavailable(NO_SENDER)
      return sender.test(subscription)
    },
  }
}

/** The members of the view that need no open queue. */
type Lasting = 'clock' | 'loaded' | 'addresses' | 'random' | 'health'

/** The members of an open queue that are values, each of functions that answer with a promise; the others are functions. */
type Values = 'reader' | 'live'

type OpenView = Omit<QueueView, Lasting>

const noAnswer = async (): Promise<never> => begun<never>(null)

/** Stand for the values while the queue is not open. Their calls reject instead of throwing, so that a request is left with none of its promises. */
const CLOSED: Pick<OpenView, Values> = {
  reader: createReader(noAnswer, async () => undefined),
  live: {
    brief: noAnswer,
    destinations: noAnswer,
    named: noAnswer,
    destination: noAnswer,
    shares: noAnswer,
    owners: noAnswer,
    log: noAnswer,
  },
}

const viewOf = (parts: ApiParts, clock: Clock): OpenView => {
  const { relay, store, reader, node, outbox } = parts
  const services = (): ApiServices => begun(parts.services)
  const operations = (): Operations => services().operations
  return {
    reader,
    live: liveQueue(relay, node),
    nodes: () => (node === null ? null : sharedNodes(relay, node, clock)),
    operations,
    subscriptions: () => subscriptionPort(services()),
    tokens: () => ({ store, clock }),
    suppressionChanges: () => relay.suppressions.changes,
    quotaChanges: () => relay.quotas.changes,
    plan: (asked) =>
      planOf({ reader, clock, retention: () => relay.config, policies: () => relay.policies, scheduler: operations().scheduler }, asked),
    submissions: () => ({
      open: (submission) => relay.acceptor.open(submission),
      refusal: async (...mail) => (node?.isDraining() === true ? DRAINED : relay.intake.refusal(...mail)),
      suppressed: (sender, address) => relay.suppressions.find(sender, address),
      reportSuppressed: (...about) => relay.suppressions.report(...about),
      destinationOf: (address, sender) => relay.routeOf(address, { sender, createdAt: clock.now() }).destination,
    }),
    policies: () => relay.policies,
    notices: () => relay.notices,
    draw: relay.draw,
    tally: (largest) => completeTally(() => store.tally(largest)),
    attention: () => relay.status.attention(reader),
    runSchedule: async (name, actor) => begun(services().schedules).order(name, actor),
    domainChecks: () => begun(services().domainChecks),
    onEvents: (listener) => outbox.onPublished(listener),
  }
}

function recordChanges({ relay, store, reader, accessEntries: access }: ApiParts, clock: Clock): RecordChanges {
  return {
    access,
    reader,
    clock,
    removePolicy: async (removal) => {
      const isRemoved = await removePolicy(removal, { store, clock })
      relay.sts?.forget(removal.domain)
      return isRemoved
    },
    oauth: async () => {
      const { config } = relay
      const live = await relay.status.brief()
      const passwords = readPasswords(config) ?? ''
      return {
        tables: [...config.oauth.values()].map((table) =>
          oauthJson(table, oauthPlaces(table.name, config, passwords), live.tokens ?? null),
        ),
      }
    },
    renewToken: (table) => relay.accessTokens.renew(table, ANY_USER),
  }
}

type Functions<T> = { readonly [Member in keyof T]: (...args: never) => unknown }

/** A view whose values and functions are those of the queue that is open when they are used. Functions throw while none is; `open` is null then. */
function viewThrough(open: () => (OpenView & Functions<Omit<OpenView, Values>>) | null, lasting: Pick<QueueView, Lasting>): QueueView {
  const isValue = (name: string): name is Values => name === 'reader' || name === 'live'
  const view = new Proxy(lasting, {
    get: (known, name: keyof QueueView) => {
      if (name in known) return Reflect.get(known, name) as unknown
      if (isValue(name)) return (open() ?? CLOSED)[name]
      return (...args: readonly unknown[]) => (Reflect.get(begun(open()), name) as (...given: readonly unknown[]) => unknown)(...args)
    },
  })
  return view as QueueView
}

export function queueApi(deps: QueueApiDeps): Api {
  const { clock, loaded, addresses } = deps
  const health = relayHealth({ clock, parts: deps.parts })
  let last: { readonly parts: ApiParts; readonly view: OpenView } | null = null
  const open = (): OpenView | null => {
    const opened = deps.parts()
    if (opened === null) return null
    if (last?.parts !== opened) last = { parts: opened, view: viewOf(opened, clock) }
    return last.view
  }
  const view = viewThrough(open, { clock, loaded, addresses, random: systemRandom, health })
  return new Api(view, { records: () => recordChanges(begun(deps.parts()), clock) })
}
