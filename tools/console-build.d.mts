export declare const builtFolder: string
export declare const stampName: string
export declare function sourceStamp(): string
export declare function isConsoleStale(): boolean
export declare function buildConsoleIfStale(): Promise<boolean>
