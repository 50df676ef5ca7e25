/** MT-PRIORITY (RFC 6710): who may ask for which class, what is answered, and what the next hop gets. */
import { expect, test } from 'vitest'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import { createWorld } from '../../src/testkit/create-world.ts'
import type { World } from '../../src/testkit/world.ts'
import type { WorldOptions } from '../../src/testkit/options/world-options.ts'
import { dialogue } from '../support/world-dialogue.ts'

const CLASSES = {
  fast: { weight: 100, priority: 4, allow: ['10.0.0.0/8'] },
  normal: { weight: 10, priority: 0 },
  slow: { weight: 2 },
  bulk: { weight: 1, priority: -4 },
}

const worldOf = (config: WorldOptions['config'] = {}): Promise<World> => createWorld({ config: { class: CLASSES, ...config } })

/** Sends a message, and returns the reply to MAIL. */
async function mailed(world: World, parameters: string, sender = 'app@us.example'): Promise<string> {
  const lines = ['EHLO app', `MAIL FROM:<${sender}>${parameters}`, 'RCPT TO:<ann@far.example>', 'DATA', 'Subject: hi\r\n\r\nhi\r\n.']
  const replies = await dialogue(world, lines)
  return replies.findLast((line, n) => n < replies.length - 3 && /^\d{3} /.test(line)) ?? ''
}

/** Arguments of the MAIL commands that hosts accepted. */
const mailCommands = (world: World): readonly string[] =>
  world.history().events.flatMap((entry) => {
    if (entry.where !== 'remote' || entry.event.event !== 'reply') return []
    const { command = '', reply } = entry.event
    return command.startsWith('MAIL FROM:') && reply.startsWith('250') ? [command.slice('MAIL FROM:'.length)] : []
  })

const classesIn = async (world: World): Promise<readonly (string | undefined)[]> =>
  (await world.reader.list(ANY_MESSAGE, { after: 0, limit: 50 })).map(({ message }) => message.class)

test('everybody may lower; a value between two classes stands for the higher, and one above all for the highest', async () => {
  await using world = await worldOf()
  await world.suspend('far.example')
  expect(await dialogue(world, ['EHLO app'])).toContainEqual(expect.stringMatching(/^250[ -]MT-PRIORITY$/))
  expect(await mailed(world, '')).toBe('250 2.1.0 Ok')
  expect(await mailed(world, ' MT-PRIORITY=0')).toBe('250 2.1.0 Ok')
  expect(await mailed(world, ' MT-PRIORITY=-4')).toBe('250 2.1.0 Ok')
  expect(await mailed(world, ' MT-PRIORITY=-9')).toBe('250 2.3.6 -4 is the priority of the message')
  expect(await mailed(world, ' MT-PRIORITY=-1')).toBe('250 2.3.6 0 is the priority of the message')
  // A stranger may not raise.
  expect(await mailed(world, ' MT-PRIORITY=9')).toBe('250 2.3.6 0 is the priority of the message')
  expect(await classesIn(world)).toEqual(['normal', 'normal', 'bulk', 'bulk', 'normal', 'normal'])
})

test('a client that a class names may raise, and its header field has no effect beside the parameter', async () => {
  await using world = await worldOf({ class: { ...CLASSES, fast: { weight: 100, priority: 4, allow: ['127.0.0.1'] } } })
  await world.suspend('far.example')
  expect(await mailed(world, ' MT-PRIORITY=1')).toBe('250 2.3.6 4 is the priority of the message')
  expect(await mailed(world, ' MT-PRIORITY=4')).toBe('250 2.1.0 Ok')
  const field = 'X-Deferd-Class: bulk\r\nSubject: hi\r\n\r\nhi\r\n.'
  await dialogue(world, ['EHLO app', 'MAIL FROM:<app@us.example> MT-PRIORITY=4', 'RCPT TO:<ann@far.example>', 'DATA', field])
  expect(await classesIn(world)).toEqual(['fast', 'fast', 'fast'])
})

test('bad and doubled values are refused, and the parameter is unknown where no class has a priority', async () => {
  await using world = await worldOf()
  for (const wrong of [
    'MT-PRIORITY',
    'MT-PRIORITY=',
    'MT-PRIORITY=10',
    'MT-PRIORITY=+4',
    'MT-PRIORITY=-0',
    'MT-PRIORITY=04',
    'MT-PRIORITY=high',
    'MT-PRIORITY=1 MT-PRIORITY=1',
  ])
    expect((await dialogue(world, ['EHLO app', `MAIL FROM:<app@us.example> ${wrong}`])).at(-1)).toBe(
      '501 5.5.2 Bad MT-PRIORITY parameter syntax',
    )
  for (const config of [{ class: { normal: { weight: 1 } } }, { smtpd_discard_ehlo_keywords: ['mt-priority'] }, { class: {} }]) {
    await using other = await worldOf(config)
    const replies = await dialogue(other, ['EHLO app', 'MAIL FROM:<app@us.example> MT-PRIORITY=0'])
    expect(replies.join('\n')).not.toMatch(/^250.MT-PRIORITY/m)
    expect(replies.at(-1)).toBe('555 5.5.4 Unsupported option: MT-PRIORITY=0')
  }
})

test('the next hop gets the priority of the class where it offers the extension; Received has what was granted', async () => {
  await using world = await worldOf({ sender_class_maps: { 'news@us.example': 'bulk', 'mid@us.example': 'slow' } })
  world.rule({ at: 'ehlo', domain: 'far.example', extensions: ['PIPELINING', 'MT-PRIORITY MIXER'] })
  await mailed(world, ' MT-PRIORITY=-9')
  await mailed(world, '', 'news@us.example')
  await mailed(world, '', 'mid@us.example')
  await world.advance('1s')
  expect(mailCommands(world)).toEqual(['<app@us.example> MT-PRIORITY=-4', '<news@us.example> MT-PRIORITY=-4', '<mid@us.example>'])
  expect(world.received[0]?.content.toString()).toMatch(/for <ann@far\.example>\r\n\tPRIORITY -4; /)
  expect(world.received[1]?.content.toString()).not.toContain('PRIORITY')
})
