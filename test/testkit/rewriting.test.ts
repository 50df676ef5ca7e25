/** Rewritten mail in a world, on both stores. */
import { createTransport } from 'nodemailer'
import { describe, expect, test } from 'vitest'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import { createWorld, type World, type WorldOptions } from '../../src/testkit/index.ts'

async function inWorld(options: WorldOptions, story: (world: World) => Promise<void>): Promise<void> {
  const world = await createWorld(options)
  try {
    await story(world)
  } finally {
    await world.close()
  }
}

const send = (world: World, from: string, to: string | string[]) =>
  createTransport(world.transport()).sendMail({ from, to, subject: 'hello', text: 'hi' })

describe.each(['memory', 'sqlite'] as const)('with the store %s', (store) => {
  const config = { canonical_maps: { 'app@internal.example': 'service@us.example', '@internal.example': '@us.example' } }

  test('envelope and header are mapped before 250', () =>
    inWorld({ store, config }, async (world) => {
      await send(world, 'app@internal.example', ['ann@far.example', 'eve@internal.example'])
      await world.settle()
      const [mail] = world.mailbox('ann@far.example').mails()
      expect(mail).toMatchObject({ from: 'service@us.example' })
      expect(mail?.header('From')).toBe('service@us.example')
      expect(mail?.header('To')).toBe('ann@far.example, eve@us.example')
      expect(world.mailbox('eve@us.example').mails()).toHaveLength(1)
      expect(world.mailbox('eve@internal.example').mails()).toHaveLength(0)
    }))

  test('a notice names the address that the sender used, and goes to the mapped sender', () =>
    inWorld({ store, config }, async (world) => {
      world.destination('us.example').rejects('eve@us.example', '550 5.1.1 no such user')
      await send(world, 'app@internal.example', 'eve@internal.example')
      await world.settle()
      const [notice] = world.mailbox('service@us.example').notices()
      expect(notice).toMatchObject({ action: 'failed', recipients: [{ recipient: 'eve@us.example' }] })
      expect(world.mailbox('service@us.example').mails()[0]?.content).toContain('Original-Recipient: rfc822;eve@internal.example')
    }))

  test('an alias is delivered to all its addresses, with copies, and its sender learns of the expansion', () =>
    inWorld(
      {
        store,
        config: { virtual_alias_maps: { 'team@us.example': 'ann@far.example, eve@other.example' }, always_bcc: 'archive@us.example' },
      },
      async (world) => {
        const dsn = { notify: ['SUCCESS', 'FAILURE'] as const }
        const envelope = { from: 'app@us.example', to: 'team@us.example', dsn: { ...dsn, notify: [...dsn.notify] } }
        await createTransport(world.transport()).sendMail({ envelope, to: 'team@us.example', text: 'hi' })
        await world.settle()
        for (const address of ['ann@far.example', 'eve@other.example', 'archive@us.example']) {
          expect(
            world
              .mailbox(address)
              .mails()
              .map((mail) => mail.header('To')),
          ).toEqual(['team@us.example'])
        }
        expect(world.mailbox('team@us.example').mails()).toEqual([])
        const [notice, ...others] = world.mailbox('app@us.example').notices()
        expect(notice).toMatchObject({ action: 'expanded', recipients: [{ recipient: 'team@us.example', status: '2.0.0' }] })
        expect(others).toEqual([])
      },
    ))

  test('a loop of aliases refuses the mail with 451, and an alias may name itself', () =>
    inWorld(
      {
        store,
        config: { virtual_alias_maps: { 'a@us.example': 'b@us.example', 'b@us.example': 'a@us.example', 'c@us.example': 'c@us.example' } },
      },
      async (world) => {
        const refused = { response: '451 4.6.0 Error: Alias expansion error' }
        await expect(send(world, 'app@us.example', 'a@us.example')).rejects.toMatchObject(refused)
        await send(world, 'app@us.example', 'c@us.example')
        await world.settle()
        expect(world.mailbox('c@us.example').mails()).toHaveLength(1)
      },
    ))

  test('a looping alias bounces with 5.4.6, and its other addresses get the mail', () =>
    inWorld({ store, config: { myorigin: 'us.example', alias_maps: { team: 'lead, ann@far.example', lead: 'team' } } }, async (world) => {
      await send(world, 'app@us.example', 'team@us.example')
      await world.settle()
      expect(world.mailbox('ann@far.example').mails()).toHaveLength(1)
      const [notice, ...others] = world.mailbox('app@us.example').notices()
      expect(notice).toMatchObject({ action: 'failed', recipients: [{ recipient: 'lead@us.example', status: '5.4.6' }] })
      expect(others).toEqual([])
    }))

  test('smtp_generic_maps apply to mail that is sent, and the queue keeps the addresses', () =>
    inWorld(
      { store, config: { smtp_generic_maps: { 'app@localdomain.test': 'app@us.example', 'eve@far.example': 'eve@new.example' } } },
      async (world) => {
        world.destination('far.example').greylists('5m')
        await send(world, 'app@localdomain.test', ['eve@far.example', 'ann@other.example'])
        const [queued] = await world.reader.list(ANY_MESSAGE, { after: 0, limit: 1 })
        expect([queued?.message.sender, queued?.recipients[0]?.address]).toEqual(['app@localdomain.test', 'eve@far.example'])
        await world.settle()
        const [mail] = world.mailbox('eve@new.example').mails()
        expect(mail).toMatchObject({ from: 'app@us.example', to: ['eve@new.example'] })
        expect([mail?.header('From'), mail?.header('To')]).toEqual(['app@us.example', 'eve@new.example, ann@other.example'])
        expect(mail?.content.endsWith('\r\n\r\nhi\r\n')).toBe(true)
      },
    ))

  test('a failed lookup in smtp_generic_maps defers the delivery', () =>
    inWorld({ store, config: { smtp_generic_maps: { 'eve@far.example': ',' } } }, async (world) => {
      await send(world, 'app@us.example', ['eve@far.example', 'ann@other.example'])
      await world.advance('1m')
      const reason = 'smtp_generic_maps: the value "," for eve@far.example is not an address; correct the table'
      expect(world.attempts('eve@far.example')).toMatchObject([{ outcome: 'deferred', status: '4.3.0' }])
      expect(JSON.stringify(world.attempts('eve@far.example'))).toContain(JSON.stringify(reason).slice(1, -1))
    }))

  test('a lookup without a usable result refuses the mail with 451, and nothing is queued', () =>
    inWorld({ store, config: { recipient_canonical_maps: { 'eve@far.example': ',' } } }, async (world) => {
      const refused = { responseCode: 451, response: '451 4.3.0 Error: address lookup failed' }
      await expect(send(world, 'app@us.example', ['ann@far.example', 'eve@far.example'])).rejects.toMatchObject(refused)
      const header = { envelope: { from: 'app@us.example', to: 'ann@far.example' }, to: 'eve@far.example', text: 'hi' }
      await expect(createTransport(world.transport()).sendMail(header)).rejects.toMatchObject(refused)
      await world.settle()
      expect(world.mailbox('ann@far.example').mails()).toEqual([])
      await send(world, 'app@us.example', 'ann@far.example')
      await world.settle()
      expect(world.mailbox('ann@far.example').mails()).toHaveLength(1)
    }))
})
