// SPDX-License-Identifier: Apache-2.0
#include "silc/report/offscreen.h"

#include <dlfcn.h>

#include <cstdint>
#include <vector>

namespace silc {
namespace {

// A shared library that stays: drivers leave threads and exit handlers behind, so that unloading
// one is asking for a crash. RTLD_GLOBAL, because MuJoCo finds the OpenGL that is current by
// looking for eglGetCurrentContext and OSMesaGetCurrentContext among the loaded symbols.
void* OpenLibrary(const std::vector<const char*>& names) {
  for (const char* name : names) {
    if (void* library = ::dlopen(name, RTLD_NOW | RTLD_GLOBAL)) return library;
  }
  return nullptr;
}

template <typename Function>
bool Resolve(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(::dlsym(library, name));
  return *function != nullptr;
}

// ---- EGL
// -----------------------------------------------------------------------------------------

// the part of EGL 1.5 used here; types and numbers are those of the Khronos registry
using EglBoolean = unsigned int;
using EglEnum = unsigned int;
using EglInt = std::int32_t;
using EglHandle = void*;
constexpr EglEnum kEglOpenGlApi = 0x30A2, kEglPlatformDevice = 0x313F,
                  kEglPlatformSurfaceless = 0x31DD;
constexpr EglInt kEglNone = 0x3038;
constexpr EglInt kEglConfig[] = {0x3033,
                                 0x0001,  // SURFACE_TYPE: PBUFFER_BIT
                                 0x3040,
                                 0x0008,  // RENDERABLE_TYPE: OPENGL_BIT
                                 0x3024,
                                 8,
                                 0x3023,
                                 8,
                                 0x3022,
                                 8,  // RED, GREEN, BLUE_SIZE
                                 0x3025,
                                 24,  // DEPTH_SIZE
                                 kEglNone};

struct Egl {
  const char* (*QueryString)(EglHandle, EglInt);
  void* (*GetProcAddress)(const char*);
  EglHandle (*GetDisplay)(void*);
  EglBoolean (*Initialize)(EglHandle, EglInt*, EglInt*);
  EglBoolean (*Terminate)(EglHandle);
  EglBoolean (*BindApi)(EglEnum);
  EglBoolean (*ChooseConfig)(EglHandle, const EglInt*, EglHandle*, EglInt, EglInt*);
  EglHandle (*CreateContext)(EglHandle, EglHandle, EglHandle, const EglInt*);
  EglHandle (*CreatePbufferSurface)(EglHandle, EglHandle, const EglInt*);
  EglBoolean (*MakeCurrent)(EglHandle, EglHandle, EglHandle, EglHandle);
  EglBoolean (*DestroyContext)(EglHandle, EglHandle);
  EglBoolean (*DestroySurface)(EglHandle, EglHandle);

  bool Load() {
    void* library = OpenLibrary({"libEGL.so.1", "libEGL.so"});
    return library && Resolve(library, "eglQueryString", &QueryString) &&
           Resolve(library, "eglGetProcAddress", &GetProcAddress) &&
           Resolve(library, "eglGetDisplay", &GetDisplay) &&
           Resolve(library, "eglInitialize", &Initialize) &&
           Resolve(library, "eglTerminate", &Terminate) &&
           Resolve(library, "eglBindAPI", &BindApi) &&
           Resolve(library, "eglChooseConfig", &ChooseConfig) &&
           Resolve(library, "eglCreateContext", &CreateContext) &&
           Resolve(library, "eglCreatePbufferSurface", &CreatePbufferSurface) &&
           Resolve(library, "eglMakeCurrent", &MakeCurrent) &&
           Resolve(library, "eglDestroyContext", &DestroyContext) &&
           Resolve(library, "eglDestroySurface", &DestroySurface);
  }

  // every way to a display without a screen: graphics cards and software renderers as devices,
  // Mesa's surfaceless platform, and what the driver takes for the default
  std::vector<EglHandle> Displays() const {
    std::vector<EglHandle> displays;
    using PlatformDisplay = EglHandle (*)(EglEnum, void*, const EglInt*);
    using QueryDevices = EglBoolean (*)(EglInt, EglHandle*, EglInt*);
    const auto platform_display =
        reinterpret_cast<PlatformDisplay>(GetProcAddress("eglGetPlatformDisplayEXT"));
    const auto query_devices = reinterpret_cast<QueryDevices>(GetProcAddress("eglQueryDevicesEXT"));
    if (platform_display && query_devices) {
      EglHandle devices[16];
      EglInt count = 0;
      if (!query_devices(16, devices, &count)) count = 0;
      for (int i = 0; i < count; ++i)
        displays.push_back(platform_display(kEglPlatformDevice, devices[i], nullptr));
    }
    if (platform_display)
      displays.push_back(platform_display(kEglPlatformSurfaceless, nullptr, nullptr));
    displays.push_back(GetDisplay(nullptr));
    return displays;
  }
};

class EglContext final : public OffscreenContext {
 public:
  ~EglContext() override {
    egl_.MakeCurrent(display_, nullptr, nullptr, nullptr);
    if (context_) egl_.DestroyContext(display_, context_);
    if (surface_) egl_.DestroySurface(display_, surface_);
    egl_.Terminate(display_);
  }
  const char* name() const override { return "EGL"; }

  // whether OpenGL is current on this display
  static std::unique_ptr<EglContext> On(const Egl& egl, EglHandle display, int width, int height) {
    EglInt major = 0, minor = 0, count = 0;
    if (!display || !egl.Initialize(display, &major, &minor)) return nullptr;
    std::unique_ptr<EglContext> context(new EglContext(egl, display));
    EglHandle config = nullptr;
    if (!egl.BindApi(kEglOpenGlApi) || !egl.ChooseConfig(display, kEglConfig, &config, 1, &count) ||
        count < 1)
      return nullptr;
    const EglInt size[] = {0x3057, width, 0x3056, height, kEglNone};  // WIDTH, HEIGHT
    context->surface_ = egl.CreatePbufferSurface(display, config, size);
    context->context_ = egl.CreateContext(display, config, nullptr, nullptr);
    if (!context->context_ ||
        !egl.MakeCurrent(display, context->surface_, context->surface_, context->context_))
      return nullptr;
    return context;
  }

 private:
  EglContext(const Egl& egl, EglHandle display) : egl_(egl), display_(display) {}

  Egl egl_;
  EglHandle display_, surface_ = nullptr, context_ = nullptr;
};

// ---- OSMesa
// --------------------------------------------------------------------------------------

class OsmesaContext final : public OffscreenContext {
 public:
  ~OsmesaContext() override {
    if (context_) destroy_(context_);
  }
  const char* name() const override { return "OSMesa"; }

  static std::unique_ptr<OsmesaContext> Make(int width, int height) {
    void* library = OpenLibrary({"libOSMesa.so.8", "libOSMesa.so.6", "libOSMesa.so"});
    void* (*create)(unsigned, int, int, int, void*) = nullptr;
    unsigned char (*make_current)(void*, void*, unsigned, int, int) = nullptr;
    std::unique_ptr<OsmesaContext> context(new OsmesaContext);
    if (!library || !Resolve(library, "OSMesaCreateContextExt", &create) ||
        !Resolve(library, "OSMesaMakeCurrent", &make_current) ||
        !Resolve(library, "OSMesaDestroyContext", &context->destroy_))
      return nullptr;
    constexpr unsigned kRgba = 0x1908, kUnsignedByte = 0x1401;  // OpenGL's numbers
    context->pixels_.resize(std::size_t(4) * std::size_t(width) * std::size_t(height));
    context->context_ = create(kRgba, 24, 8, 8, nullptr);
    if (!context->context_ ||
        !make_current(context->context_, context->pixels_.data(), kUnsignedByte, width, height))
      return nullptr;
    return context;
  }

 private:
  void (*destroy_)(void*) = nullptr;
  void* context_ = nullptr;
  std::vector<std::uint8_t> pixels_;  // the default framebuffer; MuJoCo draws into one of its own
};

}  // namespace

std::unique_ptr<OffscreenContext> OffscreenContext::Create(int width,
                                                           int height,
                                                           std::string* why) {
  Egl egl{};
  const bool has_egl = egl.Load();
  if (has_egl) {
    for (const EglHandle display : egl.Displays()) {
      if (auto context = EglContext::On(egl, display, width, height)) return context;
    }
  }
  if (auto context = OsmesaContext::Make(width, height)) return context;
  *why = has_egl ? "EGL is there but gives no OpenGL context, and OSMesa is not there"
                 : "neither EGL nor OSMesa is there";
  *why += " (Debian: apt-get install libegl1 libgl1-mesa-dri)";
  return nullptr;
}

}  // namespace silc
