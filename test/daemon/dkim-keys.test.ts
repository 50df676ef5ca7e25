/** Keys of a running daemon: signing in the thread pool, a reload that keeps the previous keys, and a start that is refused. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateKeyPairSync } from 'node:crypto'
import { createTransport } from 'nodemailer'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { configFrom } from '../../src/config/load.ts'
import { startDaemon, type Daemon } from '../../src/daemon/daemon.ts'
import { Events } from '../../src/telemetry/events.ts'
import { KEY_FILES, writePrivate } from '../support/dkim/dkim-keys.ts'
import { DaemonFolder } from '../support/started-daemon.ts'

let home: string
let daemon: Daemon | null = null
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'deferd-dkim-keys-'))
})
afterEach(async () => {
  await daemon?.stop()
  daemon = null
  rmSync(home, { recursive: true, force: true })
})

const configured = (keys: readonly string[]) =>
  configFrom(
    {
      queue_directory: join(home, 'queue'),
      relayhost: '[127.0.0.1]:9',
      smtpd_listen: '127.0.0.1:0',
      dkim: { 'us.example': { keys } },
    },
    'relay.example',
  )

/** Starts a daemon. Returns a function that submits a message and resolves with the selectors of its signatures. */
async function started(keys: readonly string[]): Promise<() => Promise<string>> {
  const accepted: string[] = []
  const events = new Events(() => Date.now())
  events.listen((event) => void (event.kind === 'accepted' && accepted.push(JSON.stringify(event.message))))
  daemon = await startDaemon({ loaded: configured(keys), events })
  const port = daemon.listeners[0]?.port
  return async () => {
    const transport = createTransport({ host: '127.0.0.1', port, ignoreTLS: true })
    await transport.sendMail({ from: 'app@us.example', to: 'ann@far.example', text: 'hi' })
    return [...(accepted.at(-1) ?? '').matchAll(/ s=(\w+);/g)].map(([, selector]) => selector).join(' ')
  }
}

test('a reload takes new keys; with a key that cannot be used, the previous ones stay', async () => {
  const rsa = writePrivate(join(home, 'rsa.pem'), readFileSync(KEY_FILES.rsa, 'utf8'))
  const signed = await started([`r1:${rsa}`])
  expect(await signed()).toBe('r1')
  await daemon?.reload(configured([`r2:${rsa}`, `e2:${KEY_FILES.ed25519}`]))
  expect(await signed()).toBe('r2 e2')
  writeFileSync(rsa, 'damaged')
  await expect(daemon?.reload(configured([`r3:${rsa}`]))).rejects.toMatchObject({ exitCode: 78, message: expect.stringContaining(rsa) })
  expect(await signed()).toBe('r2 e2')
})

test('deferd start and deferd check end with 78 and the line of the key', async () => {
  const folder = new DaemonFolder()
  try {
    const path = writePrivate(
      join(folder.path, 'ec.pem'),
      generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    )
    const file = join(folder.path, 'deferd.toml')
    writeFileSync(file, `[dkim."us.example"]\nkeys = ["s1:${path}"]\n`)
    for (const command of ['start', 'check']) {
      const { code, out, err } = await folder.run([command, '--config', file]).ended
      expect(code).toBe(78)
      expect(out + err).toContain(`${file}:2: dkim."us.example": ${path} has a key of the type ec: use RSA or Ed25519`)
    }
  } finally {
    await folder.close()
  }
})
