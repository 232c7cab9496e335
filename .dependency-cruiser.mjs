// For editors and `depcruise` itself; the rules are written in tools/check/import-rules.ts.
import { importRules, readingOptions } from './tools/check/import-rules.ts'

export default { forbidden: importRules, options: readingOptions }
