/** The API of a relay in a world: a tour of what needs SMTP sessions, a target of events and an authority. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AccessEntries } from '../../src/access/access-entries.ts'
import { EventSender } from '../../src/subscriptions/event-sender.ts'
import { SubscriptionChanges } from '../../src/subscriptions/subscription-changes.ts'
import { seededRandom } from '../../src/system/random.ts'
import { Events } from '../../src/telemetry/events.ts'
import { createWorld, type World } from '../../src/testkit/index.ts'
import { ApiServer } from './api-server.ts'

const HOP = 'smtp.office365.com'

export interface TouredWorld extends AsyncDisposable {
  readonly world: World
  readonly api: ApiServer
}

/** Mail to `far.example` is deferred in a session. Its table of OAuth is `m365`. */
export async function openTouredWorld(): Promise<TouredWorld> {
  const folder = mkdtempSync(join(tmpdir(), 'tour-'))
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text, { mode: 0o600 })
    return join(folder, name)
  }
  const table = { provider: 'microsoft', tenant: 'contoso.example', grant: 'client_credentials', client_id: 'app' } as const
  const world = await createWorld({
    config: {
      myorigin: 'us.example',
      smtp_tls_security_level: 'encrypt',
      smtp_sasl_password_maps: file('passwords', `[${HOP}]:587 app@contoso.example:\n`),
      smtp_sasl_oauth: 'm365',
      oauth: { m365: { ...table, client_secret_file: file('secret', 'an-app-secret\n') } },
    },
  })
  world.authority({ clients: { app: { secret: 'an-app-secret' } } }).protects(HOP)
  world.destination('far.example').offersTls().fails({ at: 'rcpt', reply: '450 4.2.1 busy, try later' })
  const { relay, store, reader, lives } = world
  const { clock } = lives.life
  const sender = new EventSender({
    outbox: store.outbox,
    clock,
    random: seededRandom(1),
    events: new Events(() => clock.wall.now()),
    addresses: lives.addresses,
    send: () => Promise.resolve({ kind: 'response', code: 200, retryAfter: null, text: '200 OK' }),
    secretsOf: () => [],
    obstacle: () => null,
    isShared: false,
  })
  const parts = {
    relay,
    store,
    reader,
    node: null,
    services: {
      sender,
      operations: lives.operations(),
      subscriptions: new SubscriptionChanges({ store, reader, clock, changed: () => relay.recorder.refresh(store.outbox) }),
      schedules: null,
      domainChecks: null,
    },
    accessEntries: new AccessEntries({ store, reader, clock }),
    outbox: { onPublished: () => () => undefined },
  }
  const api = await new ApiServer({ clock, loaded: world.loaded, parts: () => parts }).start()
  return {
    world,
    api,
    [Symbol.asyncDispose]: async () => {
      await api.close()
      await sender.stop()
      await world.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
