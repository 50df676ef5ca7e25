#!/usr/bin/env node
// The launcher: plain JavaScript that old versions of Node can parse, so that they print an error message and not a stack. It runs
// the sources in a checkout (Node strips their types) and the emitted JavaScript in the published package.
import { existsSync } from 'node:fs'
import module from 'node:module'
import { fileURLToPath } from 'node:url'

const sources = new URL('../src/', import.meta.url)
const inCheckout = existsSync(fileURLToPath(sources))
const code = inCheckout ? sources : new URL('../dist/', import.meta.url)

const { nodeRefusal } = await import(new URL('system/node-version.js', code).href)
const refusal = nodeRefusal(process.versions.node)
if (refusal !== null) {
  console.error(`${refusal}: use "npm start" in a checkout, or install a newer Node.`)
  process.exit(69)
}

// Limits the memory of a daemon, which by itself takes 140 MB more than it needs: V8 sets aside 134 MB for new objects, and glibc a
// heap for each thread. V8 13, of Node 24, also collects the whole heap for every 64 MB of content, unless it counts buffers with the
// objects. Node reads these settings only when it starts, so that the process starts again in its place, once.
const options = `${process.env['NODE_OPTIONS'] ?? ''} ${process.execArgv.join(' ')}`
if (process.argv.includes('start') && !options.includes('--max-semi-space-size') && process.execve !== undefined) {
  const counted = process.versions.v8.startsWith('13.') ? ['--external-memory-accounted-in-global-limit'] : []
  const again = [process.execPath, '--max-semi-space-size=16', ...counted, ...process.execArgv, ...process.argv.slice(1)]
  process.execve(process.execPath, again, { MALLOC_ARENA_MAX: '2', ...process.env })
}

// Keeps the compiled sources for the next command, which then starts in half the time. The cache lies beside the code, with the
// permissions of the code; where this user cannot write, nothing is kept.
const cache = fileURLToPath(new URL('../node_modules/.cache/deferd', import.meta.url))
module.enableCompileCache(cache)
// Threads look for it here.
process.env['NODE_COMPILE_CACHE'] ??= cache

await import(new URL(inCheckout ? 'cli/main.ts' : 'cli/main.js', code).href)
