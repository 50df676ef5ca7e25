#!/usr/bin/env node
// The launcher: plain JavaScript that old versions of Node can parse, so that they print an error message and not a stack. It runs
// the sources in a checkout (Node strips their types) and the emitted JavaScript in the published package.
import { existsSync, readFileSync } from 'node:fs'
import module from 'node:module'
import { fileURLToPath } from 'node:url'

const sources = new URL('../src/', import.meta.url)
const inCheckout = existsSync(fileURLToPath(sources))
const code = inCheckout ? sources : new URL('../dist/', import.meta.url)

const { daemonEnvironment, memoryOptions, nodeRefusal } = await import(new URL('system/node-version.js', code).href)
const refusal = nodeRefusal(process.versions.node, readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
if (refusal !== null) {
  console.error(`${refusal}: use "npm start" in a checkout, or install a newer Node.`)
  process.exit(69)
}

// Limits the memory of a daemon: glibc by itself has a heap for each thread. Gives it threads for syncs that overlap (store/sqlite/durability).
// These settings are read only when a process starts, so that it starts again in its place, once.
const options = `${process.env['NODE_OPTIONS'] ?? ''} ${process.execArgv.join(' ')}`
if (process.argv.includes('start') && !options.includes('--max-semi-space-size') && process.execve !== undefined) {
  const again = [process.execPath, ...memoryOptions(process.versions.v8), ...process.execArgv, ...process.argv.slice(1)]
  process.execve(process.execPath, again, { ...daemonEnvironment, ...process.env })
}

// Keeps the compiled sources for the next command, which then starts in half the time. The cache lies beside the code, with the
// permissions of the code; where this user cannot write, nothing is kept.
const cache = fileURLToPath(new URL('../node_modules/.cache/deferd', import.meta.url))
module.enableCompileCache(cache)
// Threads look for it here.
process.env['NODE_COMPILE_CACHE'] ??= cache

await import(new URL(inCheckout ? 'cli/main.ts' : 'cli/main.js', code).href)
