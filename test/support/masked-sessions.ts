/** Sessions with logins and contents, at hosts that repeat what they hear; used by the short and the long test. */
import fc from 'fast-check'
import { expect } from 'vitest'
import type { SessionRecorder } from '../../src/sessions/session-recorder.ts'
import { SessionRecordings } from '../../src/sessions/session-recordings.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'
import { QueueClock } from '../../src/system/queue-clock.ts'
import { leaks } from './secret-search.ts'
import type { Act, ServerScript } from './scripted-server.ts'
import { SmtpAgentHarness } from './smtp-agent-harness.ts'
import { commandClients } from './oauth-clients.ts'

/** Bounds of a dialogue, in octets: 16 kB, its heading and the line that counts what is left out. */
const LONGEST = 16_384 + 400

const STAGES = ['greeting', 'ehlo', 'mail', 'rcpt', 'data', 'dot', 'bdat'] as const

interface Case {
  readonly mechanism: 'PLAIN' | 'LOGIN' | 'CRAM-MD5' | 'XOAUTH2' | 'OAUTHBEARER'
  /** Password, or access token. */
  readonly secret: string
  /** A word of the content. */
  readonly word: string
  readonly words: number
  /** Reply to each line of the login; `echo` repeats the line, `secret` the secret, `challenge` has a reason, `encoded` the secret in base64. */
  readonly auth: readonly ('echo' | 'secret' | 'challenge' | 'encoded' | 'more' | '535' | '235')[]
  /** A stage with another reply. */
  readonly point: (typeof STAGES)[number] | null
  readonly act: 'refuse' | 'defer' | 'drop' | 'endless' | 'garbage' | 'silent'
  readonly extensions: readonly string[]
}

const secretText = fc.string({
  unit: fc.constantFrom(...Array.from('abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789-_.~+/=')),
  minLength: 14,
  maxLength: 40,
})

const cases: fc.Arbitrary<Case> = fc.record({
  mechanism: fc.constantFrom('PLAIN', 'LOGIN', 'CRAM-MD5', 'XOAUTH2', 'OAUTHBEARER'),
  secret: secretText.map((text) => `Zq7${text}x`),
  word: fc
    .string({ unit: fc.constantFrom(...Array.from('bdfgklmnprstvz0123456789')), minLength: 12, maxLength: 20 })
    .map((text) => `wQ${text}`),
  words: fc.integer({ min: 1, max: 400 }),
  auth: fc.array(fc.constantFrom('echo', 'secret', 'challenge', 'encoded', 'more', '535', '235'), { maxLength: 4 }),
  point: fc.option(fc.constantFrom(...STAGES)),
  act: fc.constantFrom('refuse', 'defer', 'drop', 'endless', 'garbage', 'silent'),
  extensions: fc.subarray(['PIPELINING', 'CHUNKING', '8BITMIME', 'SIZE 10000000', 'DSN', 'SMTPUTF8']),
})

const base64 = (text: string): string => Buffer.from(text).toString('base64')

function login({ auth, secret }: Case): (line: string, nth: number) => Act {
  return (line, nth) => {
    switch (auth[nth] ?? '235') {
      case 'echo':
        return `535 5.7.8 not ${line}`
      case 'secret':
        return `535 5.7.8 ${secret} is wrong`
      case 'challenge':
        return `334 ${base64(JSON.stringify({ status: '401', scope: secret }))}`
      case 'encoded':
        return `334 ${base64(secret)}`
      case 'more':
        return '334 VXNlcm5hbWU6'
      case '535':
        return '535 5.7.8 no'
      case '235':
        return '235 2.7.0 welcome'
    }
  }
}

function answer({ act }: Case): Act {
  switch (act) {
    case 'refuse':
      return '550 5.7.1 no'
    case 'defer':
      return '451 4.3.0 later'
    case 'drop':
      return { drop: true }
    case 'endless':
      return `${Array.from({ length: 300 }, (_, n) => `450-4.7.0 line ${n} of a long refusal`).join('\r\n')}\r\n450 4.7.0 \u0007end`
    case 'garbage':
      return { packets: [Buffer.from([0x1b, 0x5b, 0x32, 0x4a, 0xff, 0x0d, 0x0a])] }
    case 'silent':
      return null
  }
}

/** Changes the record of each session, as a mistake in the code would. */
export type Plant = (recorder: SessionRecorder) => void

/** Delivers a message as the case has it. Returns the dialogues. */
async function deliver(one: Case, plant: Plant): Promise<readonly string[]> {
  const clock = new QueueClock(new VirtualClock())
  const real = new SessionRecordings({ clock, keepsDeliveries: () => true })
  const recorders: SessionRecorder[] = []
  const begin: SessionRecordings['begin'] = (...parts) => {
    const recorder = real.begin(...parts)
    if (recorder === null) return null
    plant(recorder)
    recorders.push(recorder)
    return recorder
  }
  const sessions = Object.assign(Object.create(real) as SessionRecordings, { begin })
  const isToken = one.mechanism === 'XOAUTH2' || one.mechanism === 'OAUTHBEARER'
  const far = new SmtpAgentHarness({
    config: [
      'relayhost=[hop.example.com]:587',
      `smtp_tls_security_level=${isToken ? 'encrypt' : 'none'}`,
      'smtp_sasl_security_options=noanonymous',
      'smtp_sasl_password_maps=/somewhere',
      `smtp_sasl_mechanism_filter=${one.mechanism}`,
      ...(isToken ? ['smtp_sasl_oauth_token_command=token'] : []),
    ],
    agent: { sessions, secrets: { passwords: `[hop.example.com]:587 ann@example.com:${isToken ? '' : one.secret}\n` } },
    ...(isToken ? { oauth: commandClients(() => Promise.resolve(`${one.secret}\n3600`)) } : {}),
  })
  const offered = ['hop', ...(isToken ? ['STARTTLS'] : []), ...one.extensions, `AUTH ${one.mechanism}`]
  const ehlo = offered.map((text, n) => `250${n === offered.length - 1 ? ' ' : '-'}${text}`).join('\r\n')
  const script: ServerScript = {
    ehlo,
    auth: login(one),
    ...(isToken ? { starttls: '220 2.0.0 Ready' } : {}),
    ...(one.point === null ? {} : { [one.point]: answer(one) }),
  }
  far.host('hop.example.com', '192.0.2.9', script, 587)
  const content = `Subject: ${one.word}\r\n\r\n${`${one.word} password ${one.secret}\r\n`.repeat(one.words)}`
  const { outcomes } = await far.deliver({ to: ['bob@example.net'], content })
  const shown = [...outcomes.values()].flatMap(({ session }) => session?.text ?? [])
  return [...recorders.map((recorder) => recorder.record().text), ...shown]
}

/** Expects that no dialogue has a part of a login or of a content, a control character, or more than its bounds. */
export async function secretsAreMasked(runs: number, seed?: number, plant: Plant = () => undefined): Promise<void> {
  const property = fc.asyncProperty(cases, async (one) => {
    const texts = await deliver(one, plant)
    expect(texts.length).toBeGreaterThan(0)
    for (const text of texts) {
      expect(leaks(new Map([['dialogue', text]]), [one.secret, one.word]), text).toEqual([])
      expect(text).not.toContain(base64(one.secret))
      // oxlint-disable-next-line no-control-regex -- control characters are what this looks for
      expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/)
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(LONGEST)
      expect(Math.max(...text.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(512 + 11)
    }
  })
  await fc.assert(property, { numRuns: runs, ...(seed === undefined ? {} : { seed }) })
}
