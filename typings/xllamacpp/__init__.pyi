class CpuParams:
    n_threads: int
    poll: int

class CommonParamsModel:
    path: str

class CommonParams:
    model: CommonParamsModel
    n_parallel: int
    n_ctx: int
    n_batch: int
    n_ubatch: int
    n_gpu_layers: int
    cpuparams: CpuParams
    cpuparams_batch: CpuParams
    verbosity: int
    ui: bool
    use_jinja: bool
    cache_ram_mib: int
    sse_ping_interval: int
    hostnames: list[str]
    port: int
    api_keys: list[str]
    chat_template: str

class Server:
    def __init__(self, params: CommonParams) -> None: ...
    @property
    def listening_address(self) -> str: ...
