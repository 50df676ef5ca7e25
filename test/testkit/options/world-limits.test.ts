/** The disk of a world, and the settings that a world refuses because it does not simulate them. */
import { createTransport } from 'nodemailer'
import { expect, test } from 'vitest'
import { createWorld, type World, type WorldOptions } from '../../../src/testkit/index.ts'

const send = (world: World) => createTransport(world.transport()).sendMail({ from: 'app@us.example', to: 'ann@far.example', text: 'hi' })

test.each<WorldOptions['store']>(['memory', 'sqlite'])(
  'mail is refused while the disk has too little free space, in a queue in %s',
  async (store) => {
    await using world = await createWorld({ store, config: { queue_minfree: '1G' } })
    await send(world)
    world.setFreeSpace('999M')
    await expect(send(world)).rejects.toThrow('452 4.3.1')
    world.setFreeSpace(2 * 1024 ** 3)
    await send(world)
    await world.restart()
    world.setFreeSpace(0)
    await expect(send(world)).rejects.toThrow('452 4.3.1')
    expect(world.recipient('ann@far.example').accepted).toBe(2)
  },
)

test('a new world has 100G free, so that a larger queue_minfree refuses all mail', async () => {
  await using world = await createWorld({ config: { queue_minfree: '1000000G' } })
  await expect(send(world)).rejects.toThrow('452 4.3.1')
})

test('several nodes are refused with a sentence, together with the other mistakes', async () => {
  const several = 'several nodes, and partitions between them, are not simulated'
  await expect(createWorld({ config: { queue_database: 'postgresql://db/mail', maximal_queue_lifetime: '5 dayz' } })).rejects.toThrow(
    new RegExp(`queue_database: a world is one relay.*${several}.*\\n.*maximal_queue_lifetime`),
  )
  await expect(createWorld({ config: { node_lease: '5s' } })).rejects.toThrow(`node_lease: a world is one relay`)
  await expect(createWorld({ config: { minimal_backoff_time: '2h', maximal_backoff_time: '1h' } })).rejects.toThrow(
    /^minimal_backoff_time is above maximal_backoff_time$/,
  )
  await expect(createWorld({ nodes: 2 } as WorldOptions)).rejects.toThrow(several)
})

test('the port of a production configuration does not hide the relay', async () => {
  await using world = await createWorld({ config: { smtpd_listen: ['0.0.0.0:25'] } })
  await send(world)
})

test('a size that is none is refused', async () => {
  await using world = await createWorld()
  expect(() => world.setFreeSpace('much')).toThrow('expected a size such as "20M", or a number of bytes, got "much"')
})
