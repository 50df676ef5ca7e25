import { afterEach, expect, test } from 'vitest'
import type { Asked, Reply } from '../support/api-server.ts'
import { ApiWorld } from '../support/api-world.ts'

let world: ApiWorld | undefined
afterEach(async () => {
  await world?.close()
  world = undefined
})

const opened = async (): Promise<ApiWorld> => (world = await ApiWorld.open())

const MAIL = 'From: app@us.example\nSubject: hello\nDate: Thu, 1 Jan 2026 00:00:00 +0000\nMessage-ID: <1@us.example>\n\n.\nIt works.\n'

const rfc822 = (one: ApiWorld, query: string, body: string = MAIL, headers: Asked['headers'] = {}): Promise<Reply> =>
  one.api.post(`/messages${query}`, body, { as: 'sender', headers: { 'content-type': 'message/rfc822', ...headers } })

const contentOf = async (one: ApiWorld, id: string): Promise<string> => (await one.api.get(`/messages/${id}/content`, { as: 'admin' })).text

test('a message is queued for its recipients', async () => {
  const one = await opened()
  const { status, json } = await rfc822(one, '?from=app@us.example&to=ann@A.example.org&to=%3Cbob@b.example.org%3E')
  expect(status).toBe(202)
  expect(json).toEqual({
    queue_id: json.queue_id,
    message_id: '<1@us.example>',
    recipients: [
      { address: 'ann@a.example.org', destination: 'a.example.org' },
      { address: 'bob@b.example.org', destination: 'b.example.org' },
    ],
    rejected: [],
  })
  const content = await contentOf(one, json.queue_id)
  expect(content).toMatch(/^Received: from unknown \(unknown \[127\.0\.0\.1\]\)\r\n\tby \S+ \(Deferd\) with HTTP id /)
  expect(content.slice(content.indexOf('From:'))).toBe(MAIL.replaceAll('\n', '\r\n'))
  expect((await one.api.get(`/messages/${json.queue_id}`)).json).toMatchObject({ sender: 'app@us.example', recipients: [{}, {}] })
})

test('the envelope may be in header fields, and the sender may be null', async () => {
  const one = await opened()
  const fields = { 'x-envelope-from': '<>', 'x-envelope-to': 'ann@a.example.org, Bob <bob@b.example.org>' }
  const { json } = await rfc822(one, '', 'Subject: hello\r\n\r\nhi', fields)
  expect(json.recipients).toHaveLength(2)
  expect((await one.api.get(`/messages/${json.queue_id}`)).json).toMatchObject({ sender: 'MAILER-DAEMON' })
  const content = await contentOf(one, json.queue_id)
  expect(content).toMatch(/\r\nMessage-Id: <[^>]+>\r\n/)
  expect(content).toMatch(/\r\n\r\nhi\r\n$/)
})

test('a composition in JSON becomes a MIME message', async () => {
  const one = await opened()
  const attachments = [{ name: 'a.txt', type: 'text/plain', content: Buffer.from('attached').toString('base64') }]
  const body = {
    envelope: { from: 'bounces@us.example', to: ['ann@a.example.org'], notify: ['failure'], envid: 'order-7' },
    from: 'App <app@us.example>',
    to: 'Ann <ann@a.example.org>',
    bcc: ['secret@a.example.org'],
    subject: 'Grüße',
    text: 'plain',
    html: '<b>rich</b>',
    headers: { 'X-Order': '7' },
    attachments,
  }
  const { status, json } = await one.api.post('/messages', body, { as: 'sender' })
  expect(status).toBe(202)
  const content = await contentOf(one, json.queue_id)
  expect(content).toContain('\r\nX-Order: 7\r\n')
  expect(content).toContain('multipart/mixed')
  expect(content).toContain(attachments[0]?.content)
  expect(content).not.toContain('secret@')
  expect((await one.api.get(`/messages/${json.queue_id}`)).json).toMatchObject({ sender: 'bounces@us.example' })
  const simple = await one.api.post(
    '/messages',
    { from: 'app@us.example', to: 'ann@a.example.org', cc: ['bob@b.example.org'], text: 'hi' },
    { as: 'sender' },
  )
  expect(simple.json.recipients).toHaveLength(2)
})

test.each([
  ['no sender', '?to=ann@a.example.org', '/from'],
  ['an invalid sender', '?from=a%20b@c&to=ann@a.example.org', '/from'],
  ['no recipient', '?from=app@us.example', '/to'],
  ['an invalid recipient', '?from=app@us.example&to=ann@a.example.org&to=%22%3E%3Cimg%20onerror%3Dx%3E', '/to'],
  ['an unknown parameter', '?from=app@us.example&to=ann@a.example.org&colour=red', '/colour'],
])('a message with %s is refused as a whole', async (_, query, pointer) => {
  const one = await opened()
  const { status, json } = await rfc822(one, query)
  expect(status).toBe(422)
  expect(json.errors).toMatchObject([{ pointer }])
  expect((await one.api.get('/messages')).json.messages).toEqual([])
})

const compose = (one: ApiWorld, more: object): Promise<Reply> =>
  one.api.post('/messages', { from: 'app@us.example', text: 'hi', ...more }, { as: 'sender' })

const WRITE = 'write one with its domain, such as ann@example.net, and commas between several'

test.each([
  ['words', { to: 'not an address' }, '/to', 'not an address'],
  ['words beside an address', { to: 'ann@a.example.org, not an address' }, '/to', 'not an address'],
  ['addresses without a comma', { to: 'ann@a.example.org bob@b.example.org' }, '/to', 'ann@a.example.org bob@b.example.org'],
  ['a semicolon', { to: 'ann@a.example.org; bob@b.example.org' }, '/to', 'ann@a.example.org; bob@b.example.org'],
  [
    'a list as an item',
    { to: ['cat@a.example.org', 'ann@a.example.org, bob@b.example.org'] },
    '/to/1',
    'ann@a.example.org, bob@b.example.org',
  ],
  ['no domain', { to: 'ann@a.example.org', cc: 'root' }, '/cc', 'root'],
  ['a local part with @', { to: 'ann@a.example.org', bcc: ['ann@b@c.example'] }, '/bcc/0', 'ann@b@c.example'],
  ['a URL', { to: 'mailto:ann@a.example.org' }, '/to', 'mailto:ann@a.example.org'],
  ['an open quote', { to: '"Ann <ann@a.example.org>' }, '/to', '"Ann <ann@a.example.org>'],
  ['words in the envelope', { envelope: { from: '', to: ['ann@a.example.org', 'not an address'] } }, '/envelope/to/1', 'not an address'],
] as const)('a composition for %s is refused with the member and the value', async (_, body, pointer, value) => {
  const one = await opened()
  const { status, json } = await compose(one, body)
  const detail = `${JSON.stringify(value)} is not an address: ${WRITE}`
  expect([status, json]).toMatchObject([422, { type: '/problems/invalid-recipients', errors: [{ pointer, detail }] }])
  expect(json.detail).toMatch(/^nothing was queued: 1 of \d recipients? (?:is|are) invalid: /)
  expect(json.detail).toContain(`${pointer}: ${detail}`)
  expect((await one.api.get('/messages')).json.messages).toEqual([])
})

test('a list of a composition has names, comments, groups and quotes', async () => {
  const one = await opened()
  const to =
    '"Ann, A." <ann@a.example.org> (Accounts), Staff: Bob <bob@b.example.org>, cat@b.example.org;,, <@relay.example,@x.example:dan@a.example.org>, "e, e"@a.example.org'
  const { status, json } = await compose(one, { to, cc: 'undisclosed-recipients:;', bcc: ['Postmaster'] })
  expect([status, json.recipients.map(({ address }) => address)]).toEqual([
    202,
    [
      'ann@a.example.org',
      'bob@b.example.org',
      'cat@b.example.org',
      'dan@a.example.org',
      '"e, e"@a.example.org',
      expect.stringMatching(/^Postmaster@./),
    ],
  ])
})

test('an item without an address adds no recipient, and a request needs one', async () => {
  const one = await opened()
  const none = ['undisclosed-recipients:;', '', ' \t']
  const { status, json } = await compose(one, { to: none, cc: ['Staff: ;'], bcc: ['ann@a.example.org'] })
  expect([status, json]).toMatchObject([202, { recipients: [{ address: 'ann@a.example.org' }], rejected: [] }])
  const detail = 'name at least one recipient'
  expect((await compose(one, { to: none, cc: '', bcc: [] })).json.errors).toEqual([{ pointer: '/to', detail }])
  expect((await compose(one, { to: ['Staff: ann@a.example.org, bob@b.example.org;'] })).json.errors).toMatchObject([{ pointer: '/to/0' }])
})

test('a sender is one address as well', async () => {
  const one = await opened()
  for (const from of ['not an address', 'app', 'a@b@us.example', '', '<>'])
    expect((await compose(one, { from, to: 'ann@a.example.org' })).json.errors).toMatchObject([{ pointer: '/from' }])
  const { json } = await compose(one, { envelope: { from: 'not an address', to: ['ann@a.example.org'] } })
  expect(json.errors).toMatchObject([{ pointer: '/envelope/from', detail: expect.stringMatching(/^"not an address" is not an address/) }])
  expect((await one.api.get('/messages')).json.messages).toEqual([])
})

test('X-Envelope-To is a list with commas', async () => {
  const one = await opened()
  const { status, json } = await rfc822(one, '', MAIL, {
    'x-envelope-from': 'app@us.example',
    'x-envelope-to': 'ann@a.example.org bob@b.example.org',
  })
  expect([status, json.errors]).toMatchObject([
    422,
    [{ pointer: '/to', detail: expect.stringContaining('"ann@a.example.org bob@b.example.org"') }],
  ])
})

test('with partial, the valid recipients get the message', async () => {
  const one = await opened()
  const { status, json } = await rfc822(one, '?from=app@us.example&to=ann@a.example.org&to=no%20address&partial=true')
  expect(status).toBe(202)
  expect(json).toMatchObject({
    recipients: [{ address: 'ann@a.example.org' }],
    rejected: [{ address: 'no address', reason: 'not an address' }],
  })
  expect((await rfc822(one, '?from=app@us.example&to=no%20address&partial=true')).status).toBe(422)
})

test('the limits of SMTP apply', async () => {
  const one = await opened()
  const big = await rfc822(one, '?from=app@us.example&to=ann@a.example.org', `Subject: big\r\n\r\n${'x'.repeat(78)}\r\n`.repeat(140_000))
  expect(big.status).toBe(413)
  const hops = await rfc822(one, '?from=app@us.example&to=ann@a.example.org', `${'Received: from a by b\r\n'.repeat(60)}\r\nhi\r\n`)
  expect(hops.status).toBe(422)
  expect(hops.json.type).toMatch(/message-refused$/)
  const nul = await rfc822(one, '?from=app@us.example&to=ann@a.example.org', 'Subject: cut\0 here\r\n\r\nhi\r\n')
  expect(nul.json).toMatchObject({ status: 422, detail: '554 5.6.0 Error: message contains NUL characters' })
  const to = Array.from({ length: 1_001 }, (_, n) => `u${n}@a.example.org`)
  const many = await one.api.post('/messages', { from: 'app@us.example', to, text: 'hi' }, { as: 'sender' })
  expect(many.json.errors).toMatchObject([{ pointer: '/to' }])
  const form = await one.api.post('/messages', 'a=b', { as: 'sender', headers: { 'content-type': 'application/x-www-form-urlencoded' } })
  expect(form.status).toBe(415)
  expect((await one.api.get('/messages')).json.messages).toEqual([])
})

test('while mail is refused, the answer says when to try again', async () => {
  const one = await opened()
  one.queue.relay.refuseMail(true)
  const refused = await rfc822(one, '?from=app@us.example&to=ann@a.example.org')
  expect(refused.status).toBe(503)
  expect(refused.headers.get('retry-after')).toBe('30')
  one.queue.relay.refuseMail(false)
})

test('viewers and operators send no mail; a limited token sends to its destinations', async () => {
  const one = await opened()
  const send = (as: string, to: string) => one.api.post('/messages', { from: 'app@us.example', to, text: 'hi' }, { as })
  expect((await send('viewer', 'ann@a.example.org')).status).toBe(403)
  expect((await send('operator', 'ann@a.example.org')).status).toBe(403)
  expect((await send('limited-sender', 'ann@c.example')).status).toBe(403)
  expect((await send('limited-sender', 'ann@a.example.org')).status).toBe(202)
})

test('a message that is sent again with its key has the first queue id', async () => {
  const one = await opened()
  const send = (body: string, key = 'order-7') => rfc822(one, '?from=app@us.example&to=ann@a.example.org', body, { 'idempotency-key': key })
  const [first, second] = await Promise.all([send(MAIL), send(MAIL)])
  expect(second.json).toEqual(first.json)
  expect([first, second].filter(({ headers }) => headers.get('idempotent-replayed') === 'true')).toHaveLength(1)
  expect((await send(MAIL)).json).toEqual(first.json)
  const other = await send(`${MAIL}more\n`)
  expect(other.status).toBe(422)
  expect(other.json.type).toMatch(/idempotency-key-reused$/)
  expect((await one.api.get('/messages')).json.messages).toHaveLength(1)
  const composed = { from: 'app@us.example', to: 'ann@a.example.org', text: 'hi' }
  const again = (): Promise<Reply> => one.api.post('/messages', composed, { as: 'sender', headers: { 'idempotency-key': '"c"' } })
  expect((await again()).json.queue_id).toBe((await again()).json.queue_id)
  expect((await one.api.get('/messages')).json.messages).toHaveLength(2)
})

test('hostile text stays text', async () => {
  const one = await opened()
  const from = `"\\"><img onerror=alert(1)>"@x.example`
  const body = 'Subject: \u001b[2J \u202e</script>\r\n\r\n<script>alert(1)</script>\u0007\r\n'
  const { json } = await rfc822(one, `?from=${encodeURIComponent(from)}&to=ann@a.example.org`, body)
  expect((await one.api.get(`/messages/${json.queue_id}`)).json).toMatchObject({ sender: from })
  const reply = await one.api.get(`/messages/${json.queue_id}/content?part=body`, { as: 'admin' })
  expect(reply.headers.get('content-type')).toBe('text/plain; charset=utf-8')
  expect(reply.headers.get('content-disposition')).toMatch(/^attachment/)
  expect(reply.text).toContain('<script>alert(1)</script>\u0007')
})

test('a composition without a date has that of the clock of the relay', async () => {
  const one = await opened()
  const dateOf = async (headers: object): Promise<readonly string[]> => {
    const { json } = await compose(one, { to: 'ann@a.example.org', text: 'hi', headers })
    return (await contentOf(one, json.queue_id)).match(/^date: .*$/gim)?.map((line) => line.trim()) ?? []
  }
  expect(await dateOf({})).toEqual(['Date: Thu, 01 Jan 2026 00:00:00 +0000 (UTC)'])
  expect(await dateOf({ date: 'Fri, 02 Jan 2026 08:00:00 +0100' })).toEqual(['Date: Fri, 02 Jan 2026 08:00:00 +0100'])
})

test('further header fields are those that no member makes', async () => {
  const one = await opened()
  const given = {
    'Content-Language': 'de',
    'Content-Description': 'an order',
    'Content-Location': 'https://us.example/7',
    'content-ids': 'x',
  }
  const { status, json } = await compose(one, { to: 'ann@a.example.org', text: 'Grüße', headers: given })
  expect(status).toBe(202)
  const content = await contentOf(one, json.queue_id)
  for (const [name, value] of Object.entries(given)) expect(content.toLowerCase()).toContain(`\r\n${name}: ${value}\r\n`.toLowerCase())
  for (const name of ['Content-Type', 'content-transfer-encoding', 'Content-Disposition', 'CONTENT-ID', 'MIME-Version', 'Reply-To'])
    expect((await compose(one, { to: 'ann@a.example.org', headers: { [name]: 'x' } })).json.errors).toMatchObject([
      { pointer: `/headers/${name}` },
    ])
})

test('header values of a composition cannot begin another field', async () => {
  const one = await opened()
  const composed = (more: object) => compose(one, { to: 'ann@a.example.org', ...more })
  expect((await composed({ subject: 'a\r\nBcc: eve@evil.example' })).status).toBe(422)
  expect((await composed({ headers: { 'X-A: b\r\nX-C': 'd' } })).status).toBe(422)
  expect((await composed({ headers: { 'X-A': 'b\nX-C: d' } })).status).toBe(422)
  expect((await composed({ attachments: [{ name: 'a', path: '/etc/passwd' }] })).status).toBe(422)
  expect((await composed({ text: { path: '/etc/passwd' } })).status).toBe(422)
})

test('mail above a limit of the queue is refused with 503, and above that of a share with 429', async () => {
  const limits = { queue_message_limit: 3, queue_share_message_limit: 2, share_key: ['sender_domain'] } as const
  const one = (world = await ApiWorld.open('memory', undefined, limits))
  await one.queue.relay.start()
  const send = async (domain: string) => {
    const { status, headers, json } = await rfc822(one, `?from=app@${domain}&to=ann@a.example.org`)
    return { status, after: headers.get('retry-after'), type: json.type, detail: json.detail }
  }
  for (const domain of ['us.example', 'us.example']) expect((await send(domain)).status).toBe(202)
  const full = { after: '60' }
  const ofShare = '452 4.3.1 Error: too much mail of us.example in the queue'
  expect(await send('us.example')).toEqual({ ...full, status: 429, type: '/problems/share-full', detail: ofShare })
  expect((await send('them.example')).status).toBe(202)
  const ofQueue = '452 4.3.1 Error: queue is full, try again later'
  expect(await send('others.example')).toEqual({ ...full, status: 503, type: '/problems/queue-full', detail: ofQueue })
  const since = one.queue.clock.now() / 1_000
  expect(JSON.parse((await one.api.get('/now')).text)).toMatchObject({
    limits: [
      { share: null, measure: 'messages', used: 3, limit: 3, refused_since: since },
      { share: 'us.example', used: 2, limit: 2, refused_since: since },
      { share: 'them.example', used: 1, limit: 2, refused_since: null },
    ],
  })
})
