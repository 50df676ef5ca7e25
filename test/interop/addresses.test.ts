/** Odd forms of addresses: deferd and Postfix bring them to the same normal form, for tables and for the next hop. */
import { createServer, type AddressInfo, type Server } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { postfixIsMissing } from '../../scripts/bench/postfix.ts'
import { reasonToSkip } from '../support/required.ts'
import { DELIVERED, DOVECOT, FOR_LOGINS, FOR_TABLES, PATHS, ROUTES, TRANSPORTS } from './address-inputs.ts'
import { play } from './dialogue.ts'
import { startPair, type Pair, type System } from './systems.ts'

const reason = reasonToSkip('interop', await postfixIsMissing())

const asSender = (path: string): readonly string[] => [`MAIL FROM:<${path}> SMTPUTF8`, 'RCPT TO:<ann@far.test>']
const asRecipient = (path: string): readonly string[] => ['MAIL FROM:<ann@far.test> SMTPUTF8', `RCPT TO:<${path}>`]

/** Replies to a transaction. Addresses in them are left out: deferd names the normal form, Postfix the address without its quotes. */
async function repliesTo({ port }: System, lines: readonly string[]): Promise<readonly string[]> {
  const octets = lines.map((line) => Buffer.from(line).toString('latin1'))
  const replies = await play(port, ['EHLO a.example', ...octets], { quiet: 2 })
  return replies.map((reply) => reply.replace(/<.*>: /, '<…>: '))
}

/** Transactions whose replies differ, and the distinct replies. */
async function compareReplies({
  deferd,
  postfix,
}: Pair): Promise<{ readonly differences: readonly unknown[]; readonly seen: Set<string> }> {
  const differences: unknown[] = []
  const seen = new Set<string>()
  for (const lines of [...PATHS.map(asSender), ...PATHS.map(asRecipient)]) {
    const [own, reference] = await Promise.all([repliesTo(deferd, lines), repliesTo(postfix, lines)])
    if (own.join('\n') !== reference.join('\n')) differences.push({ lines, own, reference })
    for (const reply of reference) seen.add(reply)
  }
  return { differences, seen }
}

/** Envelopes that reach the next hop: of mail from each path, and to each path. */
async function envelopesAt(system: System): Promise<readonly string[]> {
  const sessions = [...DELIVERED.map(asSender), ...DELIVERED.map(asRecipient)]
  for (const lines of sessions)
    expect(await repliesTo(system, [...lines, 'DATA']), lines.join()).toContain('354 End data with <CR><LF>.<CR><LF>')
  await expect.poll(() => system.received.length).toBe(sessions.length)
  return system.received.map(({ sender, recipients }) => `${sender} to ${recipients.join()}`).toSorted()
}

describe.skipIf(reason !== null)(`odd addresses${reason === null ? '' : ` (${reason})`}`, () => {
  let pair: Pair
  beforeAll(async () => {
    pair = await startPair({ settings: FOR_TABLES })
  })
  afterAll(() => pair.stop())

  test('are found alike in access tables', async () => {
    const { differences, seen } = await compareReplies(pair)
    expect(differences).toEqual([])
    expect([...seen]).toEqual(
      expect.arrayContaining(
        ['no boss', 'no own boss', 'quoted', 'unquoted', 'accent'].map((text) => `554 5.7.1 <…>: Sender address rejected: ${text}`),
      ),
    )
  })

  test('reach the next hop in the same form', async () => {
    const [own, reference] = await Promise.all([envelopesAt(pair.deferd), envelopesAt(pair.postfix)])
    expect(own).toEqual(reference)
    expect(own).toContain('ann@far.test to "a b"@hop.test')
  })
})

describe.skipIf(reason !== null)('odd addresses in further tables', () => {
  let server: Server
  beforeAll(async () => {
    server = createServer((socket) => socket.on('error', () => undefined).write(DOVECOT))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  })
  afterAll(() => server.close())

  test('have the same owners, and are complete or not for reject_non_fqdn_sender and reject_non_fqdn_recipient', async () => {
    const { port } = server.address() as AddressInfo
    const referenceSettings = { smtpd_sasl_auth_enable: 'yes', smtpd_sasl_type: 'dovecot', smtpd_sasl_path: `inet:127.0.0.1:${port}` }
    const pair = await startPair({ settings: FOR_LOGINS, referenceSettings })
    try {
      const { differences, seen } = await compareReplies(pair)
      expect(differences).toEqual([])
      expect([...seen]).toEqual(
        expect.arrayContaining([
          '553 5.7.1 <…>: Sender address rejected: not logged in',
          '504 5.5.2 <…>: Sender address rejected: need fully-qualified address',
          '504 5.5.2 <…>: Recipient address rejected: need fully-qualified address',
        ]),
      )
    } finally {
      await pair.stop()
    }
  })

  test('have the same entry of transport_maps', async () => {
    const pair = await startPair({ settings: { recipient_delimiter: '+' }, transportMaps: TRANSPORTS })
    try {
      const routesOf = async (system: System): Promise<readonly string[]> => {
        for (const path of ROUTES) await play(system.port, ['EHLO a.example', ...asRecipient(path), 'DATA'])
        const result = /: to=<(.*?)>,.* status=deferred .*127\.0\.0\.1\]?:(\d): /
        const results = () => system.log().flatMap((line) => result.exec(line)?.slice(1, 3).join(' ') ?? [])
        await expect.poll(() => results().length).toBe(ROUTES.length)
        return results().toSorted()
      }
      const [own, reference] = await Promise.all([routesOf(pair.deferd), routesOf(pair.postfix)])
      expect(own).toEqual(reference)
      expect(new Set(own.map((line) => line.split(' ').at(-1)))).toEqual(new Set(['1', '2', '3', '4', '5']))
    } finally {
      await pair.stop()
    }
  })
})
