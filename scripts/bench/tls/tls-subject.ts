/** TLS, deferd beside Postfix in turns: connections of clients and to the next hop, each with a handshake, over P-256 and RSA-2048. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CERTIFICATE, KEY } from '../../../test/support/certificates.ts'
import { CLIENT_CERTIFICATE, CLIENT_KEY } from '../../../test/support/rsa-certificate.ts'
import { KEPT, type Load } from '../cases.ts'
import { postfixFolder, startBesidePostfix, takeTurnsBeside, type Relays, type Turns } from '../figures/beside-postfix.ts'
import { ratios, type Figure } from '../figures/figure.ts'
import type { Part, Setting, Subject } from '../figures/subject.ts'
import { measure, type Bench } from '../load.ts'
import type { Sending } from '../own-source.ts'
import { startSink } from '../sink.ts'
import type { Measure } from '../statistics.ts'

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

type ClientLoad = Load & Pick<Sending, 'tls'>

const takeTurns = (setting: Setting, bench: Bench, { relays, load }: { readonly relays: Relays; readonly load: ClientLoad }) =>
  takeTurnsBeside(setting, relays, SLOW_SHARE, (relay, part) => measure(bench, relay, load, Math.ceil(setting.sized(MESSAGES) * part)))

function figuresOf(what: string, { deferd, postfix }: Turns<Measure>, target: Figure['target']): readonly Figure[] {
  const of = (name: string, unit: string, values: readonly number[], limit: Figure['target'] = null): Figure => ({
    name: `${name}, ${what}`,
    unit,
    target: limit,
    values,
  })
  const cpu = (turns: readonly Measure[]): readonly number[] => turns.map((turn) => turn.cpu)
  const rate = (turns: readonly Measure[]): readonly number[] => turns.map((turn) => turn.rate)
  return [
    of('CPU per message', 'ms', cpu(deferd)),
    of('CPU per message, Postfix', 'ms', cpu(postfix)),
    of('CPU per message ÷ Postfix', '', ratios(cpu(deferd), cpu(postfix)), target),
    of('delivered per second', '', rate(deferd)),
    of('delivered per second, Postfix', '', rate(postfix)),
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
      const tls = { smtpd_tls_security_level: 'may', smtpd_tls_cert_file: cert, smtpd_tls_key_file: key }
      const relays = await startBesidePostfix(setting, { name: type, sinkPort: sink.port, deferd: tls, postfix: tls })
      for (const handshake of HANDSHAKES) {
        const turns = await takeTurns(setting, bench, { relays, load: { ...KEPT, connections: 'new', tls: handshake } })
        figures.push(...figuresOf(`${type}, ${handshake} handshake`, turns, targetOf(handshake)))
      }
      for (const { child } of Object.values(relays)) await child.stop()
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
      const place = { ...setting, folder }
      const sessions = `btree:${join(postfixFolder(place, type), 'data/sessions')}`
      const postfix = { ...once, smtp_tls_session_cache_database: sessions }
      const relays = await startBesidePostfix(place, { name: type, sinkPort: sink.port, deferd: once, postfix })
      const turns = await takeTurns(setting, { sink, folder, signal: setting.signal }, { relays, load: KEPT })
      figures.push(...figuresOf(`${type}, ${handshake} handshake`, turns, targetOf(handshake)))
      for (const { child } of [...Object.values(relays), sink]) await child.stop()
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
