/** Makes functions of examples in TypeScript, whose imports are replaced by given modules. */
import { stripTypeScriptTypes } from 'node:module'

type Modules = Readonly<Record<string, object>>
type Body = (modules: Modules) => Promise<unknown>
const AsyncFunction = (async () => undefined).constructor as new (parameter: string, text: string) => Body

/**
 * A function that runs an example and resolves with the value of the expression `result`, which may use the variables of the example.
 * Throws for an import that is not in `modules`.
 */
export function functionOf(text: string, modules: Modules, result = 'undefined'): () => Promise<unknown> {
  const body = stripTypeScriptTypes(text).replaceAll(/^import (\w+|\{[^}]+\}) from '([^']+)'/gm, (_, names: string, from: string) => {
    if (modules[from] === undefined) throw new Error(`an example imports ${from}, which this test does not know`)
    return `const ${names.startsWith('{') ? names : `{ default: ${names} }`} = modules[${JSON.stringify(from)}]`
  })
  const run = new AsyncFunction('modules', `${body}\nreturn ${result}`)
  return () => run(modules)
}
