import { expect, test } from 'vitest'
import { createWorld, type World } from '../../src/testkit/index.ts'

const EIGHT_BIT = 'Subject: hi\r\n\r\nGrüße\r\n'
const ASCII = 'Subject: hi\r\n\r\nhi\r\n'

/** Submits a message with the body type that a client declared. */
async function submit(world: World, content: string, body?: '7bit' | '8bitmime'): Promise<void> {
  await world.relay.acceptor.accept({
    envelope: { sender: 'app@us.example', recipients: [{ address: 'ann@far.example' }], ...(body === undefined ? {} : { body }) },
    content: [Buffer.from(content)],
    client: { uid: 0 },
  })
}

const bodyTypes = (world: World): readonly string[] =>
  world.history().events.flatMap((entry) => {
    const command = entry.where === 'remote' && entry.event.event === 'reply' ? entry.event.command : undefined
    return command?.startsWith('MAIL') === true ? [/ BODY=(\S+)/.exec(command)?.[1] ?? 'none'] : []
  })

test.each([
  [EIGHT_BIT, '7bit', '8BITMIME'],
  [EIGHT_BIT, '8bitmime', '8BITMIME'],
  [EIGHT_BIT, undefined, '8BITMIME'],
  [ASCII, '8bitmime', '7BIT'],
  [ASCII, '7bit', '7BIT'],
  [ASCII, undefined, 'none'],
] as const)('the content %j, declared as %s, is sent with BODY %s', async (content, declared, sent) => {
  await using world = await createWorld()
  await submit(world, content, declared)
  await world.settle()
  expect(bodyTypes(world)).toEqual([sent])
})

test('a host without 8BITMIME gets 8-bit content as it is, with one warning for the destination', async () => {
  await using world = await createWorld()
  world.rule({ at: 'ehlo', extensions: ['PIPELINING'] })
  const warnings: string[] = []
  world.relayEvents.listen((event) => {
    if (event.kind === 'note' && event.level === 'warning') warnings.push(event.text)
  })
  for (const content of [EIGHT_BIT, EIGHT_BIT, ASCII]) await submit(world, content)
  await world.settle()
  expect(bodyTypes(world)).toEqual(['none', 'none', 'none'])
  expect(
    world
      .mailbox('ann@far.example')
      .mails()
      .filter(({ content }) => content.includes('Grüße')),
  ).toHaveLength(2)
  expect(warnings).toEqual([
    expect.stringMatching(/: 8-bit content sent to .*, which does not offer 8BITMIME; reported once for far\.example$/),
  ])
})
