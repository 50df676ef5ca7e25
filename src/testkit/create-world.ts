/** Creates worlds: reads the configuration, with its files, and the script, and opens the queue. */
import { loadTemplates } from '../bounce/templates.ts'
import { readPasswords, readTlsFiles } from '../daemon/delivery-secrets.ts'
import { tokenCommand } from '../daemon/token-command.ts'
import { loadDkimKeys } from '../dkim/keys.ts'
import type { OauthClients } from '../oauth/access-tokens.ts'
import { readOauthClients } from '../oauth/oauth-client.ts'
import { requireObject, requireScriptText, requireSeed, requireStore, requireZone } from './options/argument-checks.ts'
import { readScriptOrDialogue } from './record/recorded-dialogue.ts'
import { WORLD_CA } from './remote/world-certificates.ts'
import { HOSTNAME, RELAY_ADDRESS, World } from './world.ts'
import { loadSimulated, requireWorldOptions } from './options/world-limits.ts'
import { openQueue, type Interceptors, type WorldOptions } from './options/world-options.ts'
import { listening, requireServer } from './options/world-server.ts'
import { DEFAULT_STORE } from './options/world-stores.ts'

/**
 * Creates a world and starts its relay, at 2026-01-01T00:00:00Z. Rejects with a ConfigError that lists every mistake in the
 * configuration or the script. Close the world with `close` or `await using`.
 */
export const createWorld = (options: WorldOptions = {}): Promise<World> => createObservedWorld(options, {})

/** Creates a world with wrappers around the ports of its relay, for simulations of the relay itself. */
export async function createObservedWorld(options: WorldOptions, between: Interceptors): Promise<World> {
  requireWorldOptions(options)
  requireStore(options.store ?? DEFAULT_STORE)
  requireSeed(options.seed ?? 1)
  if (options.script !== undefined) requireScriptText(options.script)
  requireObject('config', options.config ?? {})
  if (options.zone !== undefined) requireZone(options.zone)
  requireServer(options)
  const listen = `${RELAY_ADDRESS.address}:${RELAY_ADDRESS.port}`
  const loaded = loadSimulated(listening(options, listen), HOSTNAME)
  const { config } = loaded
  const { templates } = loadTemplates(loaded)
  const dkimKeys = loadDkimKeys(config)
  const tls = readTlsFiles(config)
  const oauth = trusting(readOauthClients(loaded, tokenCommand), WORLD_CA)
  const secrets = {
    passwords: readPasswords(config),
    tls: { ...tls, ca: tls.ca ?? WORLD_CA, policyHostCa: tls.policyHostCa ?? WORLD_CA },
    oauth,
  }
  const script = options.script === undefined ? undefined : readScriptOrDialogue(options.script, 'script')
  const queue = between.queue ?? (await openQueue(options.store ?? DEFAULT_STORE))
  const world = new World({ options, between, loaded, templates, dkimKeys, secrets, script, queue })
  await world.start()
  return world
}

/** The clients, which trust `ca` where their table names no CA certificates. */
const trusting = (clients: OauthClients, ca: string): OauthClients =>
  new Map([...clients].map(([name, client]) => [name, { ...client, ca: client.ca ?? ca }]))
