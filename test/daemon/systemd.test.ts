import { spawn } from 'node:child_process'
import { createServer } from 'node:net'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { inheritedSockets, InheritedSockets, ServiceManager, watchdogInterval } from '../../src/daemon/systemd.ts'
import { SystemNet } from '../../src/system/system-net.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'

describe('socket activation', () => {
  test('uses the descriptors from 3 on when LISTEN_PID is this process', () => {
    expect(inheritedSockets({ LISTEN_PID: '42', LISTEN_FDS: '2' }, 42)).toEqual([3, 4])
    expect(inheritedSockets({ LISTEN_PID: '41', LISTEN_FDS: '2' }, 42)).toEqual([])
    expect(inheritedSockets({}, 42)).toEqual([])
  })

  test('uses passed sockets instead of opening ports, in another process', async () => {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const module = join(import.meta.dirname, '../../src')
    const program = `
      const { InheritedSockets } = await import('${module}/daemon/systemd.ts')
      const { SystemNet } = await import('${module}/system/system-net.ts')
      const listener = await new InheritedSockets(new SystemNet(), [3]).listen({ address: '127.0.0.1', port: 1 }, () => {})
      console.log(listener.port)
      await listener.close()
      process.exit(0)`
    // The handle of a listening server has its descriptor in _handle.fd; Node offers no other way to pass it on.
    // oxlint-disable-next-line no-underscore-dangle -- the name is Node's
    const { fd } = (server as unknown as { _handle: { fd: number } })._handle
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['ignore', 'pipe', 'inherit', fd] })
    let said = ''
    for await (const chunk of child.stdout ?? []) said += String(chunk)
    const address = server.address()
    expect(said.trim()).toBe(String(typeof address === 'object' ? address?.port : ''))
    server.close()
  })

  test('opens ports when no passed socket is left', async () => {
    const listener = await new InheritedSockets(new SystemNet(), []).listen({ address: '127.0.0.1', port: 0 }, () => undefined)
    expect(listener.port).toBeGreaterThan(0)
    await listener.close()
  })
})

describe('notifications to the service manager', () => {
  test('the watchdog is notified at half its interval', () => {
    expect(watchdogInterval({ WATCHDOG_USEC: '60000000' }, 42)).toBe(30_000)
    expect(watchdogInterval({ WATCHDOG_USEC: '60000000', WATCHDOG_PID: '41' }, 42)).toBeNull()
    expect(watchdogInterval({}, 42)).toBeNull()
  })

  const path = process.env['PATH']
  afterEach(() => {
    process.env['PATH'] = path
  })

  test('READY=1, WATCHDOG=1 and STOPPING=1 are sent', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'deferd-notify-'))
    const heard = join(folder, 'heard')
    writeFileSync(join(folder, 'systemd-notify'), `#!/bin/sh\necho "$@" >> ${heard}\n`)
    chmodSync(join(folder, 'systemd-notify'), 0o755)
    writeFileSync(heard, '')
    process.env['PATH'] = `${folder}:${path}`
    const clock = new VirtualClock()
    const notes: string[] = []
    const env = { NOTIFY_SOCKET: '/run/notify', WATCHDOG_USEC: '2000000' }
    const manager = new ServiceManager({ env, pid: 42, clock, note: (text) => notes.push(text) })
    const lines = async (count: number): Promise<readonly string[]> => {
      for (let tries = 0; tries < 200; tries++) {
        const said = readFileSync(heard, 'utf8').split('\n').slice(0, -1)
        if (said.length >= count) return said
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
      return readFileSync(heard, 'utf8').split('\n').slice(0, -1)
    }
    manager.ready()
    await lines(1)
    clock.runNext()
    await lines(2)
    manager.stopping()
    expect(await lines(3)).toEqual(['--pid=42 READY=1', '--pid=42 WATCHDOG=1', '--pid=42 STOPPING=1'])
    expect(clock.pending).toBe(0)
    expect(notes).toEqual([])
    rmSync(folder, { recursive: true })
  })
})
