import { expect, test } from 'vitest'
import { Masks } from '../../../src/testkit/record/masks.ts'
import type { Observation } from '../../../src/testkit/record/observation.ts'
import { SessionTap } from '../../../src/testkit/record/session-tap.ts'

function openTap(hasTls = false) {
  const passed = { relay: '', client: '' }
  const observations: Observation[] = []
  const tap = new SessionTap({
    now: () => 0,
    masks: new Masks(false),
    hasTls,
    toRelay: (bytes) => (passed.relay += bytes.toString()),
    toClient: (bytes) => (passed.client += bytes.toString()),
    startTls: () => undefined,
    observe: (one) => observations.push(one),
  })
  const client = (text: string): void => tap.fromClient(Buffer.from(text))
  const relay = (text: string): void => tap.fromRelay(Buffer.from(text))
  return { tap, passed, observations, client, relay }
}

test('STARTTLS and CHUNKING are removed from EHLO, and their commands do not reach the relay', () => {
  const { passed, client, relay } = openTap()
  relay('220 mx ESMTP\r\n')
  client('EHLO us.example\r\n')
  relay('250-mx\r\n250-STARTTLS\r\n250-PIPELINING\r\n')
  expect(passed.client).toBe('220 mx ESMTP\r\n')
  relay('250 CHUNKING\r\n')
  expect(passed.client).toBe('220 mx ESMTP\r\n250-mx\r\n250 PIPELINING\r\n')
  client('STARTTLS\r\nBDAT 12 LAST\r\nQUIT\r\nQUIT\r\nRSET\r\n')
  expect(passed.relay).toBe('EHLO us.example\r\nRSET\r\n')
  expect(passed.client.split('\r\n').slice(-3)).toEqual([
    '502 5.5.2 Error: command not recognized',
    '502 5.5.2 Error: command not recognized',
    '',
  ])
})

test('a header of a proxy has no reply, and is not recorded', () => {
  const { tap, passed, observations, client, relay } = openTap()
  client('PROXY TCP4 198.51.100.7 192.0.2.9 1 25\r\n')
  relay('220 mx ESMTP\r\n')
  client('EHLO us.example\r\n')
  relay('250 mx\r\n')
  tap.clientEnded()
  expect(passed.relay).toBe('PROXY TCP4 198.51.100.7 192.0.2.9 1 25\r\nEHLO us.example\r\n')
  expect(observations.map(({ stage, fault }) => [stage, fault])).toEqual([
    ['greeting', null],
    ['ehlo', { extensions: [] }],
  ])
})

test('pipelined commands have their own replies, and those out of sequence are no occasions', () => {
  const { tap, observations, client, relay } = openTap()
  relay('220 mx ESMTP\r\n')
  client('HELO us.example\r\n')
  relay('250 mx\r\n')
  client('MAIL FROM:<a@us.example>\r\nRCPT TO:<b@x.example>\r\nRCPT TO:<c@x.example>\r\nDATA\r\n')
  relay('250 ok\r\n550 5.1.1 no <b@x.exam')
  relay('ple>\r\n550 5.1.1 no c\r\n503 no recipients\r\n')
  tap.clientEnded()
  expect(observations.slice(2).map(({ stage, recipient, fault }) => [stage, recipient, fault])).toEqual([
    ['mail', null, null],
    ['rcpt', 'r1@d2.example', { reply: '550 5.1.1 no <r1@d2.example>' }],
    ['rcpt', 'r2@d2.example', { reply: '550 5.1.1 no r2' }],
  ])
})

test('lines of the content that look like commands are content, in whichever pieces the content comes', () => {
  const { tap, passed, observations, client, relay } = openTap()
  relay('220 mx ESMTP\r\n')
  client('HELO us.example\r\n')
  relay('250 mx\r\n')
  client('MAIL FROM:<a@us.example>\r\nRCPT TO:<b@x.example>\r\nDATA\r\n')
  relay('250 ok\r\n250 ok\r\n354 go\r\n')
  const content = 'Subject: hi\r\n\r\nMAIL FROM:<secret@x.example>\r\n..\r\n.\r\n'
  for (const letter of content) client(letter)
  relay('250 taken\r\n')
  client('QUIT\r\n')
  relay('221 bye\r\n')
  tap.relayEnded('fin')
  expect(passed.relay).toContain(content)
  expect(observations.map(({ stage }) => stage)).toEqual([
    'greeting',
    'helo',
    'mail',
    'rcpt',
    'data',
    'body',
    'end-of-data',
    'idle',
    'quit',
  ])
  expect(observations.find(({ stage }) => stage === 'end-of-data')?.content).toBe('49 B with Subject')
  expect(observations.every(({ fault }) => fault === null)).toBe(true)
})

test('a reply with two codes is recorded as bytes', () => {
  const { tap, observations, relay } = openTap()
  relay('550-no\r\n220 yes\r\n')
  tap.clientEnded()
  expect(observations.map(({ fault }) => fault)).toEqual([{ raw: '550-no\r\n220 yes\r\n' }])
})
