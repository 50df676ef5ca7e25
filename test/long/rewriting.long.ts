/** Generated mail through deferd and Postfix, with the parameters of all situations. */
import { compareRewriting } from '../interop/rewriting-comparison.ts'
import { SITUATIONS } from '../interop/rewriting-situations.ts'

compareRewriting(Object.keys(SITUATIONS), 200)
