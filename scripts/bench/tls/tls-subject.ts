/** TLS, deferd beside Postfix in turns: connections of clients and to the next hop, each with a handshake, over P-256 and RSA-2048. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CERTIFICATE, KEY } from '../../../test/support/certificates.ts'
import { CLIENT_CERTIFICATE, CLIENT_KEY } from '../../../test/support/rsa-certificate.ts'
import { KEPT, type Load } from '../cases.ts'
import { freePort, greeted, type Child } from '../child.ts'
import { startDaemon } from '../figures/bench-daemon.ts'
import type { Figure } from '../figures/figure.ts'
import type { Part, Setting, Subject } from '../figures/subject.ts'
import { measure, type Bench, type Loaded } from '../load.ts'
import type { Sending } from '../own-source.ts'
import { postfixIsMissing, startPostfix } from '../postfix.ts'
import { startSink } from '../sink.ts'
import { rotated, type Measure } from '../statistics.ts'

const CERTIFICATES = {
  'P-256': { cert: CERTIFICATE, key: KEY },
  'RSA-2048': { cert: CLIENT_CERTIFICATE, key: CLIENT_KEY },
} as const
type CertificateType = keyof typeof CERTIFICATES

const HANDSHAKES = ['full', 'resumed'] as const
type Handshake = (typeof HANDSHAKES)[number]

/** CPU time per message beside Postfix, with a full handshake for each message. */
const MOST_OF_POSTFIX = 1 / 1.5
const MESSAGES = 2_000
/** Part of the messages that Postfix gets. */
const SLOW_SHARE = 1 / 4

const NAMES = ['deferd', 'postfix'] as const
type Name = (typeof NAMES)[number]
type Turns = Record<Name, Measure[]>
type Settings = Readonly<Record<Name, Readonly<Record<string, string>>>>
type Relay = Loaded & { readonly child: Child }
type ClientLoad = Load & Pick<Sending, 'tls'>

/** Starts both relays, and deferd alone without Postfix. */
async function startRelays(
  setting: Setting,
  name: string,
  { sinkPort, settings }: { readonly sinkPort: number; readonly settings: Settings },
) {
  const relays: Relay[] = [await startDaemon(setting, `deferd-${name}`, { relayhost: `[127.0.0.1]:${sinkPort}`, ...settings.deferd })]
  if ((await postfixIsMissing()) !== null) return relays
  const folder = join(setting.folder, `postfix-${name}`)
  mkdirSync(folder)
  const listen = await freePort()
  const child = await startPostfix(folder, { listen, nextHop: sinkPort }, settings.postfix)
  setting.undo.defer(() => child.stop())
  await greeted(child, listen, setting.signal)
  return [...relays, { name: 'postfix', child, port: listen }]
}

async function takeTurns(
  setting: Setting,
  bench: Bench,
  { relays, load }: { readonly relays: readonly Relay[]; readonly load: ClientLoad },
) {
  const turns: Turns = { deferd: [], postfix: [] }
  // The first round warms up.
  for (let round = -1; round < setting.rounds; round++)
    for (const relay of rotated(relays, Math.max(0, round))) {
      const isPostfix = relay.name === 'postfix'
      const turn = await measure(bench, relay, load, Math.ceil(setting.sized(MESSAGES) * (isPostfix ? SLOW_SHARE : 1)))
      if (round >= 0) turns[isPostfix ? 'postfix' : 'deferd'].push(turn)
    }
  return turns
}

function figuresOf(what: string, { deferd, postfix }: Turns, target: Figure['target']): readonly Figure[] {
  const of = (name: string, unit: string, values: readonly number[], limit: Figure['target'] = null): Figure => ({
    name: `${name}, ${what}`,
    unit,
    target: limit,
    values,
  })
  const ratios = postfix.flatMap(({ cpu }, round) => (deferd[round] === undefined ? [] : [deferd[round].cpu / cpu]))
  return [
    of(
      'CPU per message',
      'ms',
      deferd.map(({ cpu }) => cpu),
    ),
    of(
      'CPU per message, Postfix',
      'ms',
      postfix.map(({ cpu }) => cpu),
    ),
    of('CPU per message ÷ Postfix', '', ratios, target),
    of(
      'delivered per second',
      '',
      deferd.map(({ rate }) => rate),
    ),
    of(
      'delivered per second, Postfix',
      '',
      postfix.map(({ rate }) => rate),
    ),
  ].filter(({ values }) => values.length > 0)
}

const EACH: readonly (readonly [CertificateType, Handshake])[] = (Object.keys(CERTIFICATES) as CertificateType[]).flatMap((type) =>
  HANDSHAKES.map((handshake) => [type, handshake] as const),
)

const targetOf = (handshake: Handshake): Figure['target'] => (handshake === 'full' ? { most: MOST_OF_POSTFIX } : null)

/** Writes a certificate and its key as files. */
function written(folder: string, type: CertificateType): { readonly cert: string; readonly key: string } {
  const [cert, key] = [join(folder, `${type}.crt`), join(folder, `${type}.key`)]
  writeFileSync(cert, CERTIFICATES[type].cert)
  writeFileSync(key, CERTIFICATES[type].key)
  // The processes of Postfix read them as root.
  chmodSync(key, 0o600)
  return { cert, key }
}

const IN: Part = {
  name: 'in',
  about: '2 kB, a new connection with STARTTLS for each message, TLS 1.3',
  measure: async (setting) => {
    const sink = await startSink(setting.folder, setting.signal)
    setting.undo.defer(() => sink.child.stop())
    const bench: Bench = { sink, folder: setting.folder, signal: setting.signal }
    const figures: Figure[] = []
    for (const type of Object.keys(CERTIFICATES) as CertificateType[]) {
      const { cert, key } = written(setting.folder, type)
      const settings: Settings = {
        deferd: { smtpd_tls_security_level: 'may', smtpd_tls_cert_file: cert, smtpd_tls_key_file: key },
        postfix: { smtpd_tls_security_level: 'may', smtpd_tls_cert_file: cert, smtpd_tls_key_file: key },
      }
      const relays = await startRelays(setting, type, { sinkPort: sink.port, settings })
      for (const tls of HANDSHAKES) {
        const turns = await takeTurns(setting, bench, { relays, load: { ...KEPT, connections: 'new', tls } })
        figures.push(...figuresOf(`${type}, ${tls} handshake`, turns, targetOf(tls)))
      }
      for (const { child } of relays) await child.stop()
    }
    return figures
  },
}

const OUT: Part = {
  name: 'out',
  about: '2 kB, a new connection with STARTTLS to the next hop for each message, TLS 1.3',
  measure: async (setting) => {
    const figures: Figure[] = []
    for (const [type, handshake] of EACH) {
      const folder = join(setting.folder, `${type}-${handshake}`)
      mkdirSync(folder)
      chmodSync(folder, 0o711)
      const sink = await startSink(folder, setting.signal, { tls: { ...CERTIFICATES[type], resumes: handshake === 'resumed' } })
      setting.undo.defer(() => sink.child.stop())
      const once = { smtp_tls_security_level: 'encrypt', smtp_connection_cache_on_demand: 'no' }
      const settings: Settings = {
        deferd: once,
        postfix: { ...once, smtp_tls_session_cache_database: `btree:${join(folder, `postfix-${type}`, 'data/sessions')}` },
      }
      const relays = await startRelays({ ...setting, folder }, type, { sinkPort: sink.port, settings })
      const turns = await takeTurns(setting, { sink, folder, signal: setting.signal }, { relays, load: KEPT })
      figures.push(...figuresOf(`${type}, ${handshake} handshake`, turns, targetOf(handshake)))
      for (const { child } of [...relays, sink]) await child.stop()
    }
    return figures
  },
}

export const TLS: Subject = {
  name: 'tls',
  about: `Measures TLS 1.3 beside Postfix: CPU time per message when each message has a
connection of its own, with a full handshake and with a resumed session, with
certificates of P-256 and RSA-2048.`,
  missing: () => null,
  parts: [IN, OUT],
}
