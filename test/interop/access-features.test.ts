/** Restrictions in tables, classes, relay restrictions, recipient maps, networks and transports: deferd and Postfix reply alike. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { postfixIsMissing } from '../../scripts/bench/postfix.ts'
import { reasonToSkip } from '../support/required.ts'
import { play } from './dialogue.ts'
import { startPair, type Pair, type PairOptions } from './systems.ts'

const reason = reasonToSkip('interop', await postfixIsMissing())

type Dialogue = readonly string[]
const from = (client: string, sender: string, ...recipients: readonly string[]): Dialogue => [
  'EHLO a.example',
  `XCLIENT ADDR=${client} NAME=[UNAVAILABLE]`,
  'EHLO b.example',
  `MAIL FROM:<${sender}>`,
  ...recipients.map((one) => `RCPT TO:<${one}>`),
]

const OUTSIDE = '203.0.113.7'
const CLASSES = {
  insiders_only: 'check_sender_access inline:{us.test=OK}, reject',
  trusted: 'permit_mynetworks, check_client_access cidr:{{203.0.113.0/28 DUNNO}, {0.0.0.0/0 reject not from there}}',
  nested: 'insiders_only',
}

interface Case extends PairOptions {
  readonly dialogues: readonly Dialogue[]
}

const CASES: Readonly<Record<string, Case>> = {
  'restrictions and classes as results of tables': {
    settings: {
      smtpd_authorized_xclient_hosts: '127.0.0.1',
      smtpd_sender_restrictions:
        'check_sender_access inline:{{us.test = permit_mynetworks, reject}, {cls.test = trusted}, {two.test=permit_mynetworks defer}}, check_sender_access texthash:/tmp/deferd-access-features/senders',
      smtpd_recipient_restrictions:
        'check_recipient_access inline:{{all@open.test = insiders_only}, {deep@open.test=nested}}, warn_if_reject insiders_only',
    },
    referenceSettings: { smtpd_restriction_classes: Object.keys(CLASSES).join(), ...CLASSES },
    ownTables: { smtpd_restriction_classes: CLASSES },
    dialogues: ['127.0.0.1', OUTSIDE, '203.0.113.77'].flatMap((client) =>
      ['ann@us.test', 'x@cls.test', 'x@odd.test', 'x@one.test', 'x@two.test', 'x@other.test'].map((sender) =>
        from(client, sender, 'all@open.test', 'deep@open.test', 'ann@open.test', 'ann@far.test'),
      ),
    ),
  },
  'relaying after login only': {
    settings: {
      smtpd_authorized_xclient_hosts: '127.0.0.1',
      smtpd_relay_restrictions:
        'check_client_access inline:{203.0.113.9=REJECT, 203.0.113.8=OK}, permit_sasl_authenticated, reject_unauth_destination',
    },
    dialogues: ['127.0.0.1', OUTSIDE, '203.0.113.8', '203.0.113.9'].map((client) => from(client, 'a@b.test', 'a@open.test', 'a@far.test')),
  },
  'a relay list that defers': {
    settings: { smtpd_authorized_xclient_hosts: '127.0.0.1', smtpd_relay_restrictions: 'permit_mynetworks, defer_if_permit' },
    dialogues: ['127.0.0.1', OUTSIDE].map((client) => from(client, 'a@b.test', 'a@open.test', 'a@far.test')),
  },
  'recipients of relay_domains': {
    settings: {
      smtpd_authorized_xclient_hosts: '127.0.0.1',
      recipient_delimiter: '+',
      relay_recipient_maps: 'inline:{ann@open.test=x, @sub.open.test=x}',
      virtual_alias_maps: 'inline:{ali@open.test=ann@open.test, same@open.test=same@open.test}',
    },
    dialogues: ['127.0.0.1', OUTSIDE].map((client) =>
      from(
        client,
        'a@b.test',
        ...['ann', 'Ann', 'ann+x', 'bob', 'ali', 'same'].map((user) => `${user}@open.test`),
        'x@sub.open.test',
        'x@other.open.test',
      ),
    ),
  },
  'the transports error and retry': {
    settings: { smtpd_authorized_xclient_hosts: '127.0.0.1', virtual_alias_maps: 'inline:{ali@open.test=x@gone.test}' },
    transportMaps: {
      'gone.test': 'error:no such domain',
      'coded.test': 'error:5.7.1 not here',
      'wait.test': 'retry:wait a bit',
      'waits.test': 'retry:4.7.9 wait',
      'empty.test': 'error:',
      'off.open.test': 'error:5.1.6 moved',
    },
    dialogues: ['127.0.0.1', OUTSIDE].map((client) =>
      from(
        client,
        'a@b.test',
        ...['gone.test', 'coded.test', 'wait.test', 'waits.test', 'empty.test', 'off.open.test'].map((d) => `x@${d}`),
      ),
    ),
  },
  'tables of networks': {
    settings: {
      smtpd_authorized_xclient_hosts: '127.0.0.1',
      smtpd_client_restrictions:
        'check_client_access cidr:{{!203.0.113.0/24 DUNNO}, {if 203.0.113.0/25}, {203.0.113.4/31 REJECT low}, {endif}, {2001:db8::/32 DEFER six}, {203.0.113.128/25 permit_mynetworks, reject}}',
    },
    dialogues: ['127.0.0.1', '203.0.113.4', '203.0.113.5', '203.0.113.6', '203.0.113.200'].map((client) =>
      from(client, 'a@b.test', 'a@open.test'),
    ),
  },
  'a HELO that is required': {
    settings: { smtpd_helo_required: 'yes' },
    dialogues: [
      ['MAIL FROM:<a@b.test>', 'HELO x', 'MAIL FROM:<a@b.test>'],
      ['EHLO x', 'MAIL FROM:<a@b.test>', 'RCPT TO:<a@open.test>'],
    ],
  },
}

/** Values that are no restriction, in a file: the daemon starts all the same. */
const FOLDER = '/tmp/deferd-access-features'

describe.skipIf(reason !== null)(`features of access control${reason === null ? '' : ` (${reason})`}`, () => {
  beforeAll(() => {
    mkdirSync(FOLDER, { recursive: true })
    writeFileSync(join(FOLDER, 'senders'), 'odd.test nonsense, reject\none.test oddity\n')
  })
  afterAll(() => rmSync(FOLDER, { recursive: true }))

  test.each(Object.entries(CASES))(
    '%s',
    async (_, { dialogues, ...options }) => {
      const pair = await startPair(options)
      try {
        for (const lines of dialogues) await compare(pair, lines)
      } finally {
        await pair.stop()
      }
    },
    60_000,
  )

  test('a policy server with settings in braces', async () => {
    const closed = await unusedPort()
    const list = `check_policy_service { inet:127.0.0.1:${closed}, timeout=1s, {default_action = REJECT no policy} }, reject_unauth_destination`
    const pair = await startPair({ settings: { smtpd_recipient_restrictions: list } })
    try {
      await compare(pair, ['EHLO x', 'MAIL FROM:<a@b.test>', 'RCPT TO:<a@open.test>'])
    } finally {
      await pair.stop()
    }
  }, 60_000)
})

async function compare({ deferd, postfix }: Pair, lines: Dialogue): Promise<void> {
  const quiet = lines.findLastIndex((line) => /^(?:EHLO|HELO)/.test(line)) + 1
  const [own, reference] = await Promise.all([play(deferd.port, lines, { quiet }), play(postfix.port, lines, { quiet })])
  expect({ lines, replies: own }).toEqual({ lines, replies: reference })
}

async function unusedPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return typeof address === 'object' && address !== null ? address.port : 0
}
