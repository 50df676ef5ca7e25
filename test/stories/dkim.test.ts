/** DKIM signatures from the submission to the remote server: deferrals, restarts, rewritten headers, notices, unsigned copies. */
import { once } from 'node:events'
import { createTransport, type SendMailOptions } from 'nodemailer'
import { describe, expect, test } from 'vitest'
import { createWorld, type Mail, type World, type WorldConfig } from '../../src/testkit/index.ts'
import { BOTH_KEYS } from '../support/dkim/dkim-keys.ts'

const CONFIG: WorldConfig = { myorigin: 'us.example', dkim: { 'us.example': { keys: BOTH_KEYS } } }
const MAIL: SendMailOptions = { from: 'App <app@us.example>', to: 'ann@far.example', subject: 'voil\u00e0', text: 'hi\n\n.\n\tthere  \n\n' }

const send = (world: World, mail: SendMailOptions = {}) => createTransport(world.transport()).sendMail({ ...MAIL, ...mail })

/** Selectors of the signatures of each mail, with `!` for those that are not valid. */
const signatures = (mails: readonly Mail[]): readonly string[] =>
  mails.map((mail) => mail.signatures.map(({ selector, verified }) => `${selector}${verified ? '' : '!'}`).join(' '))

const received = (world: World, address = 'ann@far.example') => world.mailbox(address).mails()

describe('mail of a local client', () => {
  test('has a valid signature of each key, RSA first, with d= and t=, without l=', async () => {
    await using world = await createWorld({ config: CONFIG })
    await send(world)
    await world.settle()
    const [mail] = received(world)
    expect(mail?.signatures).toEqual([
      { domain: 'us.example', selector: 'r1', algorithm: 'rsa-sha256', verified: true, why: null },
      { domain: 'us.example', selector: 'e1', algorithm: 'ed25519-sha256', verified: true, why: null },
    ])
    expect(mail?.header('DKIM-Signature')).toMatch(/; c=relaxed\/relaxed; d=us\.example; s=r1; t=1767225600; /)
    expect(mail?.content).not.toMatch(/[ \t;]l=/)
  })

  test('keeps its signatures when it is deferred, and when the relay crashes and restarts', async () => {
    await using world = await createWorld({ config: CONFIG })
    world.destination('far.example').isDownFor('1h')
    await send(world)
    await world.advance('10m')
    await world.crash()
    await world.restart()
    await world.settle()
    expect(signatures(received(world))).toEqual(['r1 e1'])
    expect(received(world)[0]?.header('DKIM-Signature')).toContain(' t=1767225600; ')
  })

  test('is the same to the byte in equal worlds', async () => {
    const content = async (): Promise<readonly string[]> => {
      await using world = await createWorld({ config: CONFIG })
      const date = new Date('2026-01-01T00:00:00Z')
      await Promise.all([send(world, { messageId: '<1@us.example>', date }), send(world, { messageId: '<2@us.example>', date })])
      await world.settle()
      return received(world).map((mail) => mail.content)
    }
    expect(await content()).toEqual(await content())
  })

  test('is folded before it is signed', async () => {
    await using world = await createWorld({ config: CONFIG })
    const references = Array.from({ length: 90 }, (_, i) => `<${i}.abcdefghijklmnopq@us.example>`).join('')
    const raw = `From: app@us.example\r\nTo: ann@far.example\r\nReferences: ${references}\r\n\r\n${'y'.repeat(2_500)}\r\n`
    await send(world, { raw })
    await world.settle()
    expect(signatures(received(world))).toEqual(['r1 e1'])
    expect(received(world)[0]?.content).toMatch(/y{998}\r\n y{997}\r\n y/)
  })

  test('with content longer than a chunk is staged and signed', async () => {
    await using world = await createWorld({ config: CONFIG })
    await send(world, { attachments: [{ content: Buffer.alloc(900_000, 'abc') }] })
    await world.settle()
    expect(signatures(received(world))).toEqual(['r1 e1'])
  })

  test('is signed where local_header_rewrite_clients leave its header as it is', async () => {
    await using world = await createWorld({ config: { ...CONFIG, local_header_rewrite_clients: '' } })
    await send(world)
    await world.settle()
    expect(signatures(received(world))).toEqual(['r1 e1'])
  })

  test.each([
    ['REMOTE', ''],
    ['LOCAL', 'r1 e1'],
  ])('is what a filter says with XFORWARD SOURCE=%s', async (source, expected) => {
    await using world = await createWorld({ config: { ...CONFIG, smtpd_authorized_xforward_hosts: '127.0.0.0/8' } })
    const filter = await world.net.dial({ address: '127.0.0.1', port: 2525, timeout: 1_000 })
    const lines = ['EHLO filter.example', `XFORWARD SOURCE=${source}`, 'MAIL FROM:<app@us.example>', 'RCPT TO:<ann@far.example>', 'DATA']
    for (const line of [...lines, 'From: app@us.example\r\n\r\nhi\r\n.']) {
      await once(filter, 'data')
      filter.write(`${line}\r\n`)
    }
    await once(filter, 'data')
    filter.destroy()
    await world.settle()
    expect(signatures(received(world))).toEqual([expected])
  })
})

test('signed and unsigned mail is reported with its reason', async () => {
  await using world = await createWorld({ config: CONFIG })
  const results: unknown[] = []
  world.relayEvents.listen((event) => event.kind === 'signed' && results.push(event))
  await send(world)
  await send(world, { from: 'app@other.example' })
  await send(world, { raw: 'Subject: no From\r\nFrom: a@us.example, b@us.example\r\n\r\nhi\r\n' })
  await world.settle()
  const [again] = received(world)
  await send(world, { raw: again?.content ?? '' })
  expect(results).toEqual([
    { kind: 'signed', domain: 'us.example', algorithms: ['rsa-sha256', 'ed25519-sha256'], unsigned: null },
    { kind: 'signed', unsigned: 'no-table' },
    { kind: 'signed', unsigned: 'from' },
    { kind: 'signed', unsigned: 'present' },
  ])
})

describe('mail that checks change', () => {
  const checks = {
    header_checks: 'pcre:{{/^Subject: (.*)/ REPLACE Subject: checked}, {/^To:/ PREPEND X-Before: to}, {/^Received:/ PREPEND X-Trace: yes}}',
    body_checks: 'pcre:{{/^hi/ REPLACE bye}, {/there/ PREPEND over}}',
  }

  test('by header_checks and body_checks is signed as it is stored', async () => {
    await using world = await createWorld({ config: { ...CONFIG, ...checks } })
    await send(world)
    await world.settle()
    const [mail] = received(world)
    expect(signatures([...received(world)])).toEqual(['r1 e1'])
    expect(mail?.content).toContain('Subject: checked\r\n')
    expect(mail?.content).toMatch(/\r\n\r\nbye\r\n\r\n\.\r\nover\r\n\tthere/)
  })

  test.each([
    ['a changed header', '/^Subject:/ REPLACE Subject: sent'],
    ['an unchanged header', '/^Subject:/ WARN'],
    ['a header that smtp_generic_maps change too', '/^Subject:/ PREPEND X-Before: s'],
  ])('by smtp_header_checks has valid signatures: %s', async (name, rule) => {
    const generic = name.includes('generic') ? { smtp_generic_maps: 'inline:{app@us.example=other@us.example}' } : {}
    await using world = await createWorld({ config: { ...CONFIG, ...generic, smtp_header_checks: `pcre:{{${rule}}}` } })
    await send(world)
    await world.settle()
    expect(signatures(received(world))).toEqual(['r1 e1'])
  })
})

describe('mail without a signature', () => {
  test.each([
    ['from a domain without a table', { from: 'app@other.example' }],
    ['with two From fields', { raw: 'From: app@us.example\r\nFrom: eve@us.example\r\n\r\nhi\r\n' }],
    ['with two addresses in From', { raw: 'From: app@us.example, eve@us.example\r\n\r\nhi\r\n' }],
    ['from a domain that only resembles that of a table', { from: 'app@notus.example' }],
  ])('is mail %s', async (_name, mail) => {
    await using world = await createWorld({ config: CONFIG })
    await send(world, { ...mail, envelope: { from: 'app@us.example', to: 'ann@far.example' } })
    await world.settle()
    expect(signatures(received(world))).toEqual([''])
  })

  test('is mail of a stranger', async () => {
    const config: WorldConfig = { ...CONFIG, mynetworks: '192.0.2.0/24', relay_domains: 'far.example' }
    await using world = await createWorld({ config })
    await send(world)
    await world.settle()
    expect(signatures(received(world))).toEqual([''])
  })

  test('with several From addresses is noted once a minute', async () => {
    await using world = await createWorld({ config: CONFIG })
    const raw = 'From: app@us.example, eve@us.example\r\n\r\nhi\r\n'
    const envelope = { from: 'app@us.example', to: 'ann@far.example' }
    for (const wait of ['30s', '31s', '1s'] as const) {
      await send(world, { raw, envelope })
      await world.advance(wait)
    }
    expect(JSON.stringify(world.history().trace).match(/not signed with DKIM/g)).toHaveLength(2)
  })

  test('goes to destinations with dkim_sign = no, from the same queued message as signed copies', async () => {
    const config: WorldConfig = { ...CONFIG, destination: { 'ses.example': { dkim_sign: 'no' } } }
    await using world = await createWorld({ config })
    await send(world, { to: ['ann@far.example', 'bob@ses.example'] })
    await world.settle()
    expect([signatures(received(world)), signatures(received(world, 'bob@ses.example'))]).toEqual([['r1 e1'], ['']])
  })
})

describe('the table', () => {
  test.each([
    ['of the domain itself is preferred', 'app@news.us.example', { 'us.example': 'a', 'news.us.example': 'b' }, 'news.us.example b'],
    ['of the longest parent is next', 'app@x.news.us.example', { 'us.example': 'a', 'news.us.example': 'b' }, 'news.us.example b'],
    ['of the parent covers subdomains', 'app@news.us.example', { 'us.example': 'a' }, 'us.example a'],
    ['.parent covers subdomains only', 'app@us.example', { '.us.example': 'a' }, ''],
    ['.parent precedes parent', 'app@news.us.example', { 'us.example': 'a', '.us.example': 'b' }, 'us.example b'],
    ['is found without regard to case', 'app@US.Example', { 'us.example': 'a' }, 'us.example a'],
    ['is found by the A-label', 'app@m\u00fcller.example', { 'xn--mller-kva.example': 'a' }, 'xn--mller-kva.example a'],
  ])('%s', async (_name, from, tables, expected) => {
    const keys = Object.entries(tables).map(([heading, selector]) => [heading, { keys: [`${selector}:${BOTH_KEYS[0]?.slice(3)}`] }])
    await using world = await createWorld({ config: { dkim: Object.fromEntries(keys) } })
    await send(world, { raw: `From: ${from}\r\n\r\nhi\r\n`, envelope: { from: 'app@us.example', to: 'ann@far.example' } })
    await world.settle()
    const [mail] = received(world)
    expect(mail?.signatures.map(({ domain, selector }) => `${domain} ${selector}`).join()).toBe(expected)
    expect(mail?.signatures.every(({ verified }) => verified)).toBe(true)
  })

  test('has keys that do not sign yet', async () => {
    const keys = [BOTH_KEYS[0] ?? '', (BOTH_KEYS[1] ?? '').replace(':', '?:')]
    await using world = await createWorld({ config: { dkim: { 'us.example': { keys } } } })
    await send(world)
    await world.settle()
    expect(signatures(received(world))).toEqual(['e1'])
  })

  test('may let signatures end', async () => {
    await using world = await createWorld({ config: { dkim: { 'us.example': { keys: BOTH_KEYS, expire: '14d' } } } })
    await send(world)
    await world.settle()
    expect(received(world)[0]?.header('DKIM-Signature')).toContain(` t=1767225600; x=${1_767_225_600 + 14 * 86_400}; `)
    expect(signatures(received(world))).toEqual(['r1 e1'])
  })
})

test('a signature with the same domain and selector is kept, and not made again', async () => {
  await using first = await createWorld({ config: CONFIG })
  await send(first)
  await first.settle()
  const [signed] = received(first)
  await using second = await createWorld({ config: CONFIG })
  await send(second, { raw: signed?.content.replace(/^Received:.*\r\n(?:[ \t].*\r\n)*/m, '') ?? '' })
  await second.settle()
  expect(signatures(received(second))).toEqual(['r1 e1'])
})

test('notices are signed with the key of myorigin', async () => {
  await using world = await createWorld({ config: CONFIG })
  world.destination('picky.example').rejects('*', '550 5.1.1 no such user')
  await send(world, { from: 'app@third.example', to: 'bob@picky.example' })
  await world.settle()
  const [notice] = received(world, 'app@third.example')
  expect(notice?.from).toBe('')
  expect(notice?.signatures.map(({ domain, verified }) => [domain, verified])).toEqual([
    ['us.example', true],
    ['us.example', true],
  ])
})

describe('with smtp_generic_maps', () => {
  const generic = (map: Readonly<Record<string, string>>, more: WorldConfig = {}): WorldConfig => ({
    ...CONFIG,
    ...more,
    smtp_generic_maps: map,
  })

  test('a changed To is signed again, the same at each attempt and after a restart', async () => {
    await using world = await createWorld({ config: generic({ 'ann@far.example': 'ann@elsewhere.example' }) })
    world.rule({ domain: 'elsewhere.example', at: 'end-of-data', reply: '451 4.3.0 later', keep: true, first: 2 })
    await send(world)
    await world.advance('6m')
    await world.crash()
    await world.settle()
    const contents = received(world, 'ann@elsewhere.example').map((mail) => mail.content)
    expect(contents).toHaveLength(3)
    expect(new Set(contents).size).toBe(1)
    expect(signatures(received(world, 'ann@elsewhere.example'))).toEqual(['r1 e1', 'r1 e1', 'r1 e1'])
  })

  test('d= follows the From that goes out', async () => {
    const config = generic({ 'app@host.internal': 'app@us.example' })
    await using world = await createWorld({ config })
    await send(world, { from: 'app@host.internal' })
    await send(world, { from: 'eve@host.internal' })
    await world.settle()
    expect(received(world).map((mail) => [mail.header('From'), signatures([mail])[0]])).toEqual([
      ['app@us.example', 'r1 e1'],
      ['eve@host.internal', ''],
    ])
    expect(received(world)[0]?.header('DKIM-Signature')).toContain(' d=us.example; s=r1; t=1767225600; ')
    for (const mail of received(world)) expect(mail.content).not.toContain('X-Deferd-Digest')
  })

  test('a From without a table goes out without a signature', async () => {
    await using world = await createWorld({ config: generic({ 'app@us.example': 'app@other.example' }) })
    await send(world)
    await world.settle()
    expect(signatures(received(world))).toEqual([''])
  })

  test('an unchanged header keeps its signatures', async () => {
    await using world = await createWorld({ config: generic({ 'else@us.example': 'else@other.example' }) })
    await send(world)
    await world.settle()
    expect(signatures(received(world))).toEqual(['r1 e1'])
  })

  test('long content is signed again from the stored hash', async () => {
    await using world = await createWorld({ config: generic({ 'app@us.example': 'out@us.example' }) })
    await send(world, { attachments: [{ content: Buffer.alloc(900_000, 'abc') }] })
    await world.settle()
    expect(signatures(received(world))).toEqual(['r1 e1'])
    expect(received(world)[0]?.header('From')).toBe('App <out@us.example>')
  })

  test('a copy for a next hop that signs has none', async () => {
    const more: WorldConfig = { destination: { 'ses.example': { dkim_sign: 'no' } } }
    await using world = await createWorld({ config: generic({ 'app@us.example': 'out@us.example' }, more) })
    await send(world, { to: 'bob@ses.example' })
    await world.settle()
    expect(signatures(received(world, 'bob@ses.example'))).toEqual([''])
  })
})
