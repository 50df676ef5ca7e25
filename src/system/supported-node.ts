/**
 * Throws one sentence on a Node that is too old for deferd. Each entry of the package imports this file first, so that it runs before
 * the modules that use what the old Node lacks.
 */
import { nodeRefusal } from './node-version.js'
import { resource } from './packaged-files.ts'

const refusal = nodeRefusal(process.versions.node, resource('package.json'))
if (refusal !== null) throw new Error(`${refusal}: install a newer Node`)
